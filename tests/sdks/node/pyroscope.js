// A busy program with Pyroscope's SDK for Node.js.
const Pyroscope = require('@pyroscope/nodejs');
const keep = [];

function burn() {
  const end = Date.now() + 200;
  while (Date.now() < end) {
    keep.push({n: Math.sqrt(keep.length)});
    if (keep.length > 200000) keep.length = 0;
  }
}

Pyroscope.init({serverAddress: process.env.PROFPULL_URL, appName: 'sdk-node-pyroscope', flushIntervalMs: 3000,
  wall: {collectCpuTime: true, samplingDurationMs: 3000}});
Pyroscope.start();
const timer = setInterval(burn, 250);
setTimeout(async () => {
  clearInterval(timer);
  await Pyroscope.stop();
  process.exit(0);
}, 10000);
