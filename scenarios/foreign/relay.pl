#!/usr/bin/env perl
# A relay in Perl 5 with core modules alone: how a program in any language joins over the wire
# format of docs/wire.md. It connects, greets, syncs, starts what it is given, "runs" it and posts
# the result until the server has accepted it.
#
#     PULLCORD_TOKEN=... perl relay.pl HOST PORT NAME
#
# Without arguments it takes them from the environment, as a scenario starts it (see
# perl_relay.toml): PULLCORD_HOST, _PORT, _NAME, and PULLCORD_SPEED: how many seconds of the
# server's world pass in one of ours. Also PULLCORD_SESSION, _PROJECT and _SLUG (what it shares),
# PULLCORD_POLL_S, PULLCORD_RETRY_S, and PULLCORD_RUNS (end after so many runs; 0 is never).
#
# What it remembers ends with the process: a relay for real work keeps %attempted and @outbox on
# disk, or a run may be lost, though never done twice by one process. It has no TLS: put it behind
# a tunnel on a network that isn't trusted.
use strict;
use warnings;
use Compress::Zlib ();    # for crc32
use Encode ();
use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(sleep time);

@ARGV = grep { defined } @ENV{qw(PULLCORD_HOST PULLCORD_PORT PULLCORD_NAME)} unless @ARGV;
my ($host, $port, $name) = map { Encode::decode('UTF-8', $_) } @ARGV;
die "usage: PULLCORD_TOKEN=... perl relay.pl HOST PORT NAME\n" unless defined $name;

sub setting { my ($key, $default) = @_; return Encode::decode('UTF-8', $ENV{$key} // $default) }
my $token = setting('PULLCORD_TOKEN', '');
my $session = setting('PULLCORD_SESSION', 'gs_' . '0' x 32);
my $project = setting('PULLCORD_PROJECT', 'project');
my $slug = setting('PULLCORD_SLUG', 'example');
my $speed = setting('PULLCORD_SPEED', 1);
my $poll_s = setting('PULLCORD_POLL_S', 20 / $speed);
my $retry_first_s = setting('PULLCORD_RETRY_S', 0.5);
my $runs_left = setting('PULLCORD_RUNS', 0) || -1;

use constant {
    PROTOCOL    => 2,
    FRAME_LIMIT => 1 << 20,
    HELLO_LIMIT => 1 << 13,
    DEPTH_LIMIT => 64,
    HEARTBEAT_S => 10,    # send something at least this often
    SILENCE_S   => 35,    # hear something at least this often
    ANSWER_S    => 10,    # an unanswered question is given up
    START_TRIES => 3,
    RETRY_MAX_S => 30,
};
$SIG{PIPE} = 'IGNORE';    # a broken link is an error of the write

my $boot = join '-', map { sprintf '%08x', int rand 1 << 32 } 1 .. 4;
my $ids = (1 + int rand((1 << 21) - 1)) << 32;    # 53 bits: another range in each boot
my %attempted;                                    # runs that were started; never again
my @outbox;                                       # encoded completions that wait for acceptance
my ($socket, $buffer, $sent_s, $heard_s);

# msgpack, written: the type is chosen by the function, since Perl has one for text and numbers

use constant { NIL => "\xc0", FALSE => "\xc2", TRUE => "\xc3" };

sub number {
    my ($n) = @_;
    return $n < 128 ? chr $n : pack 'C Q>', 0xcf, $n;
}

sub text {
    my $bytes = Encode::encode('UTF-8', $_[0]);
    return pack('C N', 0xdb, length $bytes) . $bytes;
}

sub list {
    return pack('C N', 0xdd, scalar @_) . join '', @_;
}

sub dict {    # key, encoded value, key, encoded value
    my $encoded = pack 'C N', 0xdf, @_ / 2;
    while (my ($key, $value) = splice @_, 0, 2) { $encoded .= text($key) . $value }
    return $encoded;
}

# msgpack, read: the values that JSON has; anything else ends the connection

sub take {
    my ($in, $length) = @_;
    die "not msgpack: it ends too early\n" if $length > length($$in) - (pos($$in) // 0);
    my $at = pos($$in) // 0;
    pos($$in) = $at + $length;
    return substr $$in, $at, $length;
}

sub take_number { my ($in, $form, $length) = @_; return unpack $form, take($in, $length) }

my %NUMBERS = (    # by first byte: form for unpack, bytes
    0xca => ['f>', 4], 0xcb => ['d>', 8],
    0xcc => ['C', 1],  0xcd => ['n', 2],  0xce => ['N', 4],  0xcf => ['Q>', 8],
    0xd0 => ['c', 1],  0xd1 => ['s>', 2], 0xd2 => ['l>', 4], 0xd3 => ['q>', 8],
);
my %LENGTHS = (    # by first byte: what it is, form of its length, bytes
    0xd9 => ['text', 'C', 1], 0xda => ['text', 'n', 2], 0xdb => ['text', 'N', 4],
    0xdc => ['list', 'n', 2], 0xdd => ['list', 'N', 4],
    0xde => ['dict', 'n', 2], 0xdf => ['dict', 'N', 4],
);

sub value {
    my ($in, $depth) = @_;
    die "not msgpack: nested too deeply\n" if $depth > DEPTH_LIMIT;
    my $first = take_number($in, 'C', 1);
    return $first if $first < 0x80;
    return $first - 256 if $first >= 0xe0;
    return undef if $first == 0xc0;
    return $first == 0xc3 if $first == 0xc2 || $first == 0xc3;
    return take_number($in, @{ $NUMBERS{$first} }) if $NUMBERS{$first};
    my ($kind, $length);
    if ($first < 0x90)    { ($kind, $length) = ('dict', $first & 0x0f) }
    elsif ($first < 0xa0) { ($kind, $length) = ('list', $first & 0x0f) }
    elsif ($first < 0xc0) { ($kind, $length) = ('text', $first & 0x1f) }
    elsif (my $known = $LENGTHS{$first}) {
        $kind = $known->[0];
        $length = take_number($in, $known->[1], $known->[2]);
    }
    else { die sprintf "not a value that JSON has: msgpack's 0x%02x\n", $first }
    return Encode::decode('UTF-8', take($in, $length), Encode::FB_CROAK) if $kind eq 'text';
    # A length costs nothing until its elements come: each takes a byte of the frame at least.
    my @elements;
    push @elements, value($in, $depth + 1) for 1 .. ($kind eq 'dict' ? 2 * $length : $length);
    return $kind eq 'dict' ? {@elements} : \@elements;
}

sub decode {
    my ($frame) = @_;
    pos($frame) = 0;
    my $found = value(\$frame, 0);
    die "not msgpack: bytes are left over\n" if pos($frame) != length $frame;
    return $found;
}

# Frames

sub send_bytes {
    my ($bytes) = @_;
    while (length $bytes) {
        my $written = syswrite $socket, $bytes;
        die "cannot write: $!\n" unless defined $written;
        substr $bytes, 0, $written, '';
    }
    $sent_s = time;
}

sub crc { return pack 'N', Compress::Zlib::crc32($_[0]) }

sub send_frame {
    my ($content) = @_;
    die "frame over the limit\n" if length $content > FRAME_LIMIT;
    my $checked = pack('N', length $content) . crc($content);
    send_bytes($checked . crc($checked) . $content);
}

sub send_greeting {
    my $checked = pack('N', length $_[0]) . $_[0];
    send_bytes($checked . crc($checked));
}

# Takes the next frame from the buffer and returns its content, undef if it has not all come.
sub take_frame {
    return undef if length $buffer < 12;
    my ($length, $crc, $header_crc) = unpack 'N a4 a4', $buffer;
    die "a frame's header has a wrong checksum\n" if crc(substr $buffer, 0, 8) ne $header_crc;
    die "frame of $length bytes, over the limit\n" if $length > FRAME_LIMIT;
    return undef if length $buffer < 12 + $length;
    my $content = substr $buffer, 12, $length;
    die "a frame has a wrong checksum\n" if crc($content) ne $crc;
    substr $buffer, 0, 12 + $length, '';
    return $content;
}

# The same for a greeting, whose checksum counts if it is one of this protocol.
sub take_greeting {
    return undef if length $buffer < 4;
    my $length = unpack 'N', $buffer;
    die "greeting of $length bytes, over the limit\n" if $length > HELLO_LIMIT;
    return undef if length $buffer < 4 + $length;
    my $answer = decode(substr $buffer, 4, $length);
    if (($answer->{protocol} // 0) == PROTOCOL) {
        return undef if length $buffer < 8 + $length;
        die "the greeting has a wrong checksum\n"
            if crc(substr $buffer, 0, 4 + $length) ne substr $buffer, 4 + $length, 4;
        substr $buffer, 0, 8 + $length, '';
    }
    return $answer;
}

# What the next frame holds, undef once it is `until_s`. Keeps the link alive while it waits.
sub next_frame {
    my ($until_s, $take) = @_;
    $take //= \&take_frame;
    my $ready = IO::Select->new($socket);
    while (1) {
        my $content = $take->();
        next if defined $content && $content eq '';    # a heartbeat
        return $content if defined $content;
        my $now_s = time;
        return undef if $now_s >= $until_s;
        die "heard nothing for @{[SILENCE_S]} s\n" if $now_s >= $heard_s + SILENCE_S;
        send_frame('') if $now_s >= $sent_s + HEARTBEAT_S;
        my ($due_s) = sort { $a <=> $b } $until_s, $heard_s + SILENCE_S, $sent_s + HEARTBEAT_S;
        next unless $ready->can_read($due_s > $now_s ? $due_s - $now_s : 0);
        my $read = sysread $socket, $buffer, 65_536, length $buffer;
        die "cannot read: $!\n" unless defined $read;
        die "the server closed the connection\n" unless $read;
        $heard_s = time;
    }
}

# The connection: a greeting, then questions and answers

sub greet {
    $socket = IO::Socket::INET->new(
        PeerAddr => $host, PeerPort => $port, Proto => 'tcp', Timeout => 10,
    ) or die "cannot connect: $@\n";
    binmode $socket;
    ($buffer, $sent_s, $heard_s) = ('', time, time);
    send_greeting(dict(
        type => text('hello'), protocol => number(PROTOCOL),
        name => text($name), boot => text($boot), token => text($token),
    ));
    my $answer = next_frame(time + 10, \&take_greeting) // die "no welcome within 10 s\n";
    die "refused: $answer->{reason}\n" if $answer->{type} eq 'refusal';
    die "$answer->{name} speaks protocol $answer->{protocol}, this relay @{[PROTOCOL]}\n"
        if $answer->{protocol} != PROTOCOL;
    return $answer->{name};
}

# Ask the server, and return the answer's body, undef if none comes in time.
sub ask {
    my ($server, $body) = @_;
    my $id = ++$ids;
    send_frame(list(number($id), text($server), number(0), number(0), $body));
    my $until_s = time + ANSWER_S / $speed;
    while (defined(my $frame = next_frame($until_s))) {
        my (undef, undef, $reply_to, undef, $answer) = @{ decode($frame) };
        return $answer if $reply_to == $id;    # else it answers what was given up
    }
    return undef;
}

# The relay

sub post {
    my ($server) = @_;
    while (@outbox) {
        my $answer = ask($server, $outbox[0]{complete}) // return 0;
        return 0 if $answer->{type} ne 'Accepted';
        shift @outbox;
        exit 0 if --$runs_left == 0;
    }
    return 1;
}

sub may_start {
    my ($server, $command) = @_;
    for (1 .. START_TRIES) {
        my $answer = ask($server, dict(
            type => text('Start'), command_id => text($command->{command_id}),
            boot => text($boot), delivery => number($command->{delivery}),
        ));
        return $answer->{go} if $answer;
    }
    die "no answer to a start: the link is of no use\n";
}

sub run {    # here a relay for real work calls its engine
    my ($command) = @_;
    return dict(ran => text($command->{slug}), by => text("perl $^V"));
}

sub pass {
    my ($server) = @_;
    return unless post($server);
    my $answer = ask($server, dict(
        type => text('Sync'), boot => text($boot), open => list(),
        capacity => number(1), poll_us => number(int(1 + $poll_s * $speed * 1_000_000)),
        sessions => list(dict(
            id => text($session), project => text($project),
            name => text($slug), slug => text($slug),
        )),
    ));
    return unless $answer;
    for my $command (@{ $answer->{commands} }) {
        my $id = $command->{command_id};
        next if $attempted{$id} || !may_start($server, $command);
        $attempted{$id} = 1;
        push @outbox, { complete => dict(
            type => text('Complete'), command_id => text($id),
            boot => text($boot), delivery => number($command->{delivery}),
            completion => dict(
                execution_id => text("perl-$$-$id"), status => text('completed'),
                result => run($command),
            ),
        ) };
        post($server);
    }
}

my $window_s = $retry_first_s;
while (1) {
    my $since_s = time;
    eval {
        my $server = greet();
        while (1) {
            my $next_s = time + $poll_s;
            pass($server);
            # Wait for the next poll; what comes meanwhile answers nothing.
            while (defined next_frame($next_s)) { }
        }
    };
    print STDERR Encode::encode('UTF-8', "relay: $@");
    close $socket if $socket;
    $window_s = time - $since_s > $window_s ? $retry_first_s : 2 * $window_s;
    $window_s = RETRY_MAX_S if $window_s > RETRY_MAX_S;
    sleep $window_s * (0.5 + rand 0.5);
}
