// Date: the run's own time, in UTC whatever the machine's zone. A part of prelude.js.
//
// It is compiled when the script first names Date, by when the script may have replaced any other
// built-in. Nobody can have reached Date's own methods before.
(function (kit) {
'use strict';

const { Native, construct, defineProperty, floor, matches, now, slice, uncurry } = kit;

const DATE_ALONE = /^\s*[+-]?\d{4,6}(-\d\d(-\d\d)?)?\s*$/; // UTC by the language
const NAMES_ZONE = /:\d\d.*([+-]\d\d:?\d\d|\b(Z|UTC?|GMT|[ECMP][SD]T)|\dZ)\s*(\(.*\))?\s*$/i;
const inUtc = text => {
  if (matches(DATE_ALONE, text) || matches(NAMES_ZONE, text)) return text;
  return text + (matches(/\d[Tt]\d/, text) ? 'Z' : ' UTC');
};
const { parse: nativeParse, UTC } = Native.Date;
const timeOf = values => {
  if (values.length === 0) return now();
  if (values.length > 1) return UTC(...values);
  const value = values[0];
  if (value instanceof Native.Date) return +value;
  const plain = typeof value === 'object' && value !== null ? '' + value : value;
  return typeof plain === 'string' ? nativeParse(inUtc(plain)) : plain;
};
function VirtualDate(...values) {
  if (!new.target) return new VirtualDate().toString();
  return construct(Native.Date, [timeOf(values)], new.target);
}
defineProperty(VirtualDate, 'name', { __proto__: null, value: 'Date' });
defineProperty(VirtualDate, 'length', { __proto__: null, value: 7 });
const date = Native.Date.prototype;
defineProperty(VirtualDate, 'prototype', { __proto__: null, value: date, writable: false });
const hide = (object, key, value) => defineProperty(object, key,
  { __proto__: null, value, writable: true, configurable: true, enumerable: false });
hide(VirtualDate, 'now', () => floor(now()));
hide(VirtualDate, 'parse', text => nativeParse(inUtc(Native.String(text))));
hide(VirtualDate, 'UTC', UTC);
hide(date, 'constructor', VirtualDate);
const FIELDS = ['FullYear', 'Month', 'Date', 'Hours', 'Minutes', 'Seconds', 'Milliseconds'];
for (let i = 0; i < FIELDS.length; i++) {
  hide(date, 'get' + FIELDS[i], date['getUTC' + FIELDS[i]]);
  hide(date, 'set' + FIELDS[i], date['setUTC' + FIELDS[i]]);
}
hide(date, 'getDay', date.getUTCDay);
hide(date, 'getYear', function () { return this.getUTCFullYear() - 1900; });
hide(date, 'setYear', function (year) {
  return this.setUTCFullYear(year >= 0 && year <= 99 ? 1900 + +year : year);
});
hide(date, 'getTimezoneOffset', function () { return this.getTime() * 0; });
const toUTCString = uncurry(date.toUTCString);
const dayOf = self => { // of "Thu, 01 Jan 2026 00:00:00 GMT"
  const text = toUTCString(self);
  return slice(text, 0, 3) + ' ' + slice(text, 8, 11) + ' ' + slice(text, 5, 7) + slice(text, 11, -13);
};
const clockOf = self => slice(toUTCString(self), -12) + '+0000 (Coordinated Universal Time)';
const isoDayOf = self => slice(self.toISOString(), 0, -14);
const timeOnlyOf = self => slice(toUTCString(self), -12, -4);
const isValid = self => self.getTime() === self.getTime();
const shown = (...parts) => function () {
  return isValid(this) ? parts.map(part => part(this)).join(' ') : 'Invalid Date';
};
hide(date, 'toString', shown(dayOf, clockOf));
hide(date, 'toDateString', shown(dayOf));
hide(date, 'toTimeString', shown(clockOf));
hide(date, 'toLocaleString', shown(isoDayOf, timeOnlyOf));
hide(date, 'toLocaleDateString', shown(isoDayOf));
hide(date, 'toLocaleTimeString', shown(timeOnlyOf));
return VirtualDate;
})
