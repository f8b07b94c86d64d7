"""A real model server, llama.cpp, with a model of two layers whose weights are chance: it babbles.

`python babbler.py FILE` writes the model into FILE, serves it on a free port of loopback and prints
the address. It runs in an environment of its own, which has xllamacpp and gguf (`make live`).
"""

import sys
import time
from importlib import import_module
from typing import Any

WIDTH, LAYERS, HEADS, INNER = 64, 2, 4, 128
CONTEXT = 2_048  # tokens of one answer with its question
SLOTS = 4  # answers at once; others wait
MOST_TOKENS = 1_000_000  # of an answer that nobody bounds: until the model ends it
SPREAD = 0.3  # of a weight
# By how much more than any other token the end varies: one in thirty or so ends its answer.
END_FACTOR = 1.3
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "


def vocabulary(kinds: Any) -> tuple[list[str], list[Any]]:
    """The tokens: three marks, every byte, and what a keyboard has."""
    tokens = ["<unk>", "<s>", "</s>"]
    types = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL]
    tokens += [f"<0x{byte:02X}>" for byte in range(256)]
    types += [kinds.BYTE] * 256
    printable = [chr(code) for code in range(32, 127)]
    tokens += [char.replace(" ", "\u2581") for char in printable]  # as this kind of vocabulary says
    types += [kinds.NORMAL] * len(printable)
    return tokens, types


def write_model(path: str) -> None:
    """Write the model: half a megabyte."""
    gguf, numpy = import_module("gguf"), import_module("numpy")
    chance = numpy.random.default_rng(1)
    tokens, types = vocabulary(gguf.TokenType)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(TEMPLATE)

    def matrix(name: str, *shape: int, rows: Any = 1.0) -> None:
        weights = chance.standard_normal(shape) * SPREAD * rows
        writer.add_tensor(name + ".weight", weights.astype(numpy.float32))

    def ones(name: str) -> None:
        writer.add_tensor(name + ".weight", numpy.ones(WIDTH, numpy.float32))

    likely = numpy.ones((len(tokens), 1))
    likely[:259] = 0.1  # hardly ever a mark or a bare byte
    likely[2] = END_FACTOR
    matrix("token_embd", len(tokens), WIDTH)
    matrix("output", len(tokens), WIDTH, rows=likely)
    ones("output_norm")
    for layer in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            ones(f"blk.{layer}.{name}")
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"blk.{layer}.{name}", WIDTH, WIDTH)
        matrix(f"blk.{layer}.ffn_gate", INNER, WIDTH)
        matrix(f"blk.{layer}.ffn_up", INNER, WIDTH)
        matrix(f"blk.{layer}.ffn_down", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def serve(path: str) -> None:
    """Serve the model until the process ends."""
    engine = import_module("xllamacpp")
    chosen = engine.CommonParams()
    chosen.model.path = path
    chosen.port = 0
    chosen.n_parallel = SLOTS
    chosen.n_ctx = SLOTS * CONTEXT
    chosen.n_predict = MOST_TOKENS
    chosen.cpuparams.n_threads = chosen.cpuparams_batch.n_threads = 1
    chosen.sampling.seed = 1
    chosen.warmup = False
    server = engine.Server(chosen)
    sys.stdout.write(server.listening_address + "\n")
    sys.stdout.flush()
    while True:
        time.sleep(60)


if __name__ == "__main__":
    write_model(sys.argv[1])
    serve(sys.argv[1])
