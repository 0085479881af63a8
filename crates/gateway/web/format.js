// Numbers, sizes and times as text for people.

const numbers = new Intl.NumberFormat('en');

/** `1234` → `1,234`. @param {number} value */
export function count(value) {
  return numbers.format(value);
}

/** `1 change`, `2 changes`. @param {number} value @param {string} noun */
export function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** A size in bytes, in binary units: `1.4 GiB`. @param {number} bytes */
export function size(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${unit === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toFixed(1)} ${units[unit]}`;
}

/**
 * A length of time with the precision that kubectl gives it: `42s`, `5m12s`, `3h`, `12d`, `2y31d`.
 * @param {number} seconds
 */
export function duration(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 120) return `${s}s`;
  const m = Math.floor(s / 60);
  if (m < 10) return pair(m, 'm', s % 60, 's');
  if (m < 180) return `${m}m`;
  const h = Math.floor(m / 60);
  if (h < 8) return pair(h, 'h', m % 60, 'm');
  if (h < 48) return `${h}h`;
  const d = Math.floor(h / 24);
  if (d < 8) return pair(d, 'd', h % 24, 'h');
  if (d < 730) return `${d}d`;
  const y = Math.floor(d / 365);
  return y < 8 ? pair(y, 'y', d % 365, 'd') : `${y}y`;
}

/** @param {number} a @param {string} unitA @param {number} b @param {string} unitB */
function pair(a, unitA, b, unitB) {
  return b === 0 ? `${a}${unitA}` : `${a}${unitA}${b}${unitB}`;
}

const SECONDS = new Map(Object.entries({ s: 1, m: 60, h: 3600, d: 86_400, y: 31_536_000 }));

/** `5m12s` in seconds; NaN for anything else. @param {string} text */
export function parseDuration(text) {
  if (!/^(\d+[smhdy])+$/.test(text)) return NaN;
  let sum = 0;
  for (const [, number, unit] of text.matchAll(/(\d+)([smhdy])/g)) sum += Number(number) * (SECONDS.get(unit ?? '') ?? 0);
  return sum;
}

/** How long ago that was. @param {number} then milliseconds, NaN when not known @param {number} now */
export function age(then, now) {
  return Number.isNaN(then) ? '' : duration((now - then) / 1000);
}

/** A time stamp of the API as local date and time. @param {string | undefined | null} stamp */
export function moment(stamp) {
  const time = Date.parse(stamp ?? '');
  return Number.isNaN(time) ? '' : new Date(time).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
}

/** A rate with just enough digits. @param {number} perSecond */
export function rate(perSecond) {
  if (perSecond === 0) return '0';
  return perSecond < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond));
}
