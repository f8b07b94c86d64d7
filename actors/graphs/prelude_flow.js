// parallel, pipeline, retry and the timers: the script's own code over its promises. A part of
// prelude.js, compiled when the script first calls one of them.
(function (kit) {
'use strict';

const { Native, TEXT_LIMIT_CHARS, after, bound, fail, isFatal, isFinite, isInteger } = kit;
const { iteratorOf, min, notify, sleep, then, words } = kit;
const LIST_LIMIT = 4096;         // a pending agent takes 3.3 KB of script memory
const ATTEMPTS_LIMIT = 10;       // a retry of a retry multiplies
const RETRY_LIMIT_MS = 86400000; // a day: a backoff that grows on is a mistake

const itemsOf = (name, items) => {
  if (items === null || items === undefined || typeof items[iteratorOf] !== 'function') {
    throw new TypeError(name + ' must be an array');
  }
  const list = [];
  for (const item of items) {
    if (list.length >= LIST_LIMIT) {
      throw new RangeError(name + ' may have at most ' + LIST_LIMIT + ' items: work through more in parts');
    }
    list.push(item);
  }
  return list;
};
const begin = task => new Native.Promise(resolve => resolve(typeof task === 'function' ? task() : task));
const resultOf = each => each.status === 'fulfilled' ? each.value : each.reason?.partial ?? null;

// Every task settles before this does, so nothing goes on unseen.
const parallel = async (tasks, { settle = false } = {}) => {
  const ends = await Native.Promise.allSettled(itemsOf('parallel(tasks): tasks', tasks).map(begin));
  const errors = ends.filter(each => each.status === 'rejected').map(each => each.reason);
  const fatal = errors.find(isFatal);
  if (fatal) {
    fatal.partial = ends.map(resultOf);
    throw fatal;
  }
  if (settle) {
    return ends.map(each => each.status === 'fulfilled'
      ? { ok: true, value: each.value } : { ok: false, error: each.reason });
  }
  if (errors.length === 1) throw errors[0];
  if (errors.length) {
    throw new Native.AggregateError(errors, errors.length + ' of ' + ends.length + ' parallel tasks failed');
  }
  return ends.map(each => each.value);
};

const pipeline = async (items, ...stages) => {
  for (const stage of stages) {
    if (typeof stage !== 'function') {
      throw new TypeError('pipeline(items, ...stages): a stage must be a function');
    }
  }
  return parallel(itemsOf('pipeline(items): items', items).map((item, index) => async () => {
    let value = item;
    for (const stage of stages) value = await stage(value, item, index);
    return value;
  }));
};

const retry = async (task, { attempts = 3, backoffMs = 0, factor = 2, when = () => true } = {}) => {
  if (typeof task !== 'function') throw new TypeError('retry(task): task must be a function');
  if (!(isInteger(attempts) && attempts >= 1 && attempts <= ATTEMPTS_LIMIT)) {
    throw new RangeError('retry: attempts must be a whole number from 1 to ' + ATTEMPTS_LIMIT);
  }
  if (!(isFinite(backoffMs) && backoffMs >= 0 && isFinite(factor) && factor >= 0)) {
    throw new RangeError('retry: backoffMs and factor must be finite and not negative');
  }
  for (let attempt = 1; ; attempt++) {
    try {
      return await task(attempt);
    } catch (error) {
      if (attempt >= attempts || isFatal(error) || error?.retryable === false) throw error;
      if (!when(error, attempt)) throw error;
      const delay = backoffMs && min(backoffMs * factor ** (attempt - 1), RETRY_LIMIT_MS);
      notify('retry', words(error, TEXT_LIMIT_CHARS), ',"attempt":' + attempt + ',"delay_ms":' + delay);
      if (delay > 0) await sleep(delay);
    }
  }
};

let timerSerial = 0;
const timers = new Map(), keepTimer = bound(timers, 'set'), dropTimer = bound(timers, 'delete');
const setTimeout = (callback, ms = 0, ...rest) => {
  if (typeof callback !== 'function') {
    throw new TypeError('setTimeout(callback, ms): callback must be a function');
  }
  const timer = ++timerSerial;
  after(ms, 'setTimeout(callback, ms)', () => {
    if (!dropTimer(timer)) return;
    then(new Native.Promise(resolve => resolve(callback(...rest))), undefined, fail);
  });
  keepTimer(timer, true);
  return timer;
};
const clearTimeout = timer => { dropTimer(timer); };

return { __proto__: null, parallel, pipeline, retry, setTimeout, clearTimeout };
})
