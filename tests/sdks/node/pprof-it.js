// A busy program under pprof-it, whose files `profpull import` pushes. PROFPULL is the program.
const {spawnSync} = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');

const busy = `
  const timer = setInterval(() => {
    const end = Date.now() + 200;
    let n = 0;
    while (Date.now() < end) n += Math.sqrt(n);
  }, 250);
  setTimeout(() => clearInterval(timer), 3000);
`;

function run(program, ...args) {
  const ended = spawnSync(program, args, {encoding: 'utf8', env: {...process.env, PPROF_OUT: out}});
  if (ended.status !== 0) throw new Error(`${program}: ${ended.error || ended.stderr}`);
}

const out = fs.mkdtempSync(path.join(os.tmpdir(), 'pprof-it-'));
try {
  const app = path.join(out, 'app.js');
  fs.writeFileSync(app, busy);
  run(process.execPath, '-r', require.resolve('pprof-it'), app);
  fs.unlinkSync(app);
  run(process.env.PROFPULL, 'import', '--url', process.env.PROFPULL_URL, '--protocol', 'ingest', '--name', 'sdk-node-pprof-it', out);
} finally {
  fs.rmSync(out, {recursive: true});
}
