// A busy program that sends what @datadog/pprof makes.
const pprof = require('@datadog/pprof');

function burn() {
  const end = Date.now() + 200;
  let n = 0;
  while (Date.now() < end) n += Math.sqrt(n);
  return n;
}

pprof.time.start({durationMillis: 3000, intervalMicros: 10000});
const timer = setInterval(burn, 250);
setTimeout(async () => {
  clearInterval(timer);
  const body = await pprof.encode(pprof.time.stop());
  const answer = await fetch(process.env.PROFPULL_URL + '/v1/pprof?service_name=sdk-node-datadog', {method: 'POST', body});
  if (!answer.ok) throw new Error(await answer.text());
}, 3000);
