// Values of profiles in words.

const SECONDS = [
  [86400, "d"], [3600, "h"], [60, "min"], [1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"],
];
const BYTES = [
  [1024 ** 4, "TiB"], [1024 ** 3, "GiB"], [1024 ** 2, "MiB"], [1024, "KiB"], [1, "B"],
];
const COUNTS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const FACTORS = {
  nanoseconds: 1e-9, microseconds: 1e-6, milliseconds: 1e-3, seconds: 1, ns: 1e-9,
};

function scaled(value, steps) {
  const size = Math.abs(value);
  const [factor, unit] = steps.find(([least]) => size >= least) ?? steps[steps.length - 1];
  const number = value / factor;
  const digits = Math.abs(number) >= 100 || Number.isInteger(number) ? 0 : Math.abs(number) >= 10 ? 1 : 2;
  return `${number.toFixed(digits)}${unit === "" ? "" : " "}${unit}`;
}

export function format(value, unit) {
  if (value === 0) {
    return "0";
  }
  if (unit in FACTORS) {
    return scaled(value * FACTORS[unit], SECONDS);
  }
  return scaled(value, unit === "bytes" ? BYTES : COUNTS);
}

// Numbers of the server's rates: a value in "cores", "s/s", "bytes/s", "/s", "bytes" or "".
export function formatRate(value, unit) {
  if (unit === "cores" || unit === "s/s") {
    return value > 0 && value < 0.001 ? `<0.001 ${unit}` : `${digits(value)} ${unit}`;
  }
  const isRate = unit.endsWith("/s");
  const steps = unit.startsWith("bytes") ? BYTES : COUNTS;
  const size = Math.abs(value);
  const [factor, prefix] = steps.find(([least]) => size >= least) ?? steps[steps.length - 1];
  const text = `${digits(value / factor)}${prefix === "" ? "" : ` ${prefix}`}`;
  return isRate ? `${text}/s` : text;
}

function digits(number) {
  const size = Math.abs(number);
  return number.toFixed(size >= 100 || Number.isInteger(size) ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 3);
}

// The end of an axis, as pages/rate.c has it.
export function axisEnd(most, unit) {
  if (!(most > 0)) {
    return 1;
  }
  if (unit.startsWith("bytes")) {
    return 2 ** Math.ceil(Math.log2(most));
  }
  const base = 10 ** Math.floor(Math.log10(most));
  return base * ([1, 2, 5].find((step) => step * base >= most * (1 - 1e-9)) ?? 10);
}

export function share(part, whole) {
  const percent = whole > 0 ? (100 * part) / whole : 0;
  return `${percent.toFixed(percent >= 10 || percent === 0 ? 1 : 2)} %`;
}
