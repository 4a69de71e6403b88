// Makes Renovate search for updates in a copy of the tree, for which only the next patches of common and of two dependencies
// of modules are released. Fails unless Renovate updates every module, chart and action as expected: common in all
// modules by one change, and a dependency in the module that has it. Renovate can reach only the module proxy below, on
// loopback.
//
// Usage: node bump.mjs <renovate> <copy of the tree>
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';

const [renovate, tree] = process.argv.slice(2);
const common = 'github.com/direct-secrets/direct-secrets/common';
const failures = [];

const files = readdirSync(tree, { recursive: true }).map((file) => file.replaceAll('\\', '/'));
const lines = (file, pattern) => readFileSync(join(tree, file), 'utf8').match(new RegExp(pattern, 'gm')) ?? [];

// Count the versions that Renovate must find in each file, with simple patterns.
const expected = new Map();
const versions = new Set();
for (const file of files) {
  if (/(^|\/)go\.mod(\.tmpl)?$/.test(file)) {
    const requires = lines(file, `^(?:require)?\\s+${common} v\\S+`);
    const onlyPins = /^(e2e\/servers|hack)\//.test(file); // programs of other projects
    if (requires.length > 0 || !(onlyPins || file === 'common/go.mod')) expected.set(file, 1);
    requires.forEach((line) => versions.add(line.trim().split(' ').pop()));
  }
  if (/^charts\/(provider|generator)-[^/]+\/Chart\.yaml$/.test(file)) expected.set(file, 1);
}
if (versions.size !== 1) {
  console.error(`The modules require these versions of common, and must require one: ${[...versions].join(' ') || 'none'}`);
  process.exit(1);
}
const [current] = versions;
const next = current.replace(/\d+$/, (patch) => Number(patch) + 1);

// Dependencies of one module, and the files that must move with each.
const own = new Map([
  ['github.com/aws/aws-sdk-go-v2/service/ecr', 'provider-aws/go.mod'],
  ['github.com/hashicorp/vault/api', 'provider-vault/go.mod'],
]);
const released = new Map([[common, [current, next]]]);
for (const [name, file] of own) {
  const [line] = lines(file, `^\\s+${name} v\\S+`);
  const is = line.trim().split(' ').pop();
  released.set(name, [is, is.replace(/\d+$/, (patch) => Number(patch) + 1)]);
}

const proxy = createServer((request, response) => {
  const answers = {};
  for (const [name, versions] of released) {
    answers[`/${name}/@v/list`] = `${versions.join('\n')}\n`;
    for (const Version of versions) answers[`/${name}/@v/${Version}.info`] = JSON.stringify({ Version, Time: '2026-01-01T00:00:00Z' });
  }
  response.statusCode = request.url in answers ? 200 : 404;
  response.end(answers[request.url]);
});
await new Promise((listening) => proxy.listen(0, '127.0.0.1', listening));

const run = spawn(renovate, ['--platform=local', '--dry-run=lookup'], {
  cwd: tree,
  stdio: ['ignore', 'pipe', 'ignore'],
  env: {
    ...process.env,
    GOPROXY: `http://127.0.0.1:${proxy.address().port}`,
    GIT_DIR: '/dev/null', // so that it reads the files of the copy, not those of a surrounding repository
    LOG_FORMAT: 'json',
    LOG_LEVEL: 'debug',
    RENOVATE_BASE_DIR: join(dirname(tree), 'renovate'),
    RENOVATE_CONFIG: JSON.stringify({ packageRules: [{ matchPackageNames: ['*', ...[...released.keys()].map((name) => `!${name}`)], enabled: false }] }),
  },
});
let out = '';
run.stdout.setEncoding('utf8').on('data', (text) => (out += text));
const status = await new Promise((ended) => run.on('close', ended));
proxy.close();

const log = out.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
const found = log.find((entry) => entry.msg === 'packageFiles with updates')?.config;
if (status !== 0 || !found) {
  console.error(out);
  console.error(`Renovate ended with ${status}, and ${found ? 'with' : 'without'} a list of updates.`);
  process.exit(1);
}
const all = Object.entries(found).flatMap(([manager, packageFiles]) =>
  packageFiles.flatMap(({ packageFile, deps }) => deps.map((dep) => ({ manager, packageFile, ...dep }))),
);

const moved = new Map();
const branches = new Set();
for (const { packageFile, depName, updates } of all) {
  if (depName !== common) continue;
  for (const { newValue, branchName } of updates) {
    if (newValue.replace(/^v/, '') !== next.slice(1)) failures.push(`${packageFile} would move to ${newValue}, not ${next}`);
    moved.set(packageFile, (moved.get(packageFile) ?? 0) + 1);
    branches.add(branchName);
  }
}
for (const [file, want] of expected) {
  const got = moved.get(file) ?? 0;
  if (got !== want) failures.push(`${file}: Renovate moves ${got} versions with common, and there are ${want}`);
}
if (branches.size !== 1) failures.push(`common must move by one change, and does by these branches: ${[...branches].join(' ') || 'none'}`);

for (const [name, file] of own) {
  const want = files.filter((f) => f === file || (/^((e2e|migrate)\/)?go\.mod$/.test(f) && lines(f, `^\\s+${name} v`).length > 0)).sort();
  const found = all.filter(({ depName, updates }) => depName === name && updates?.length > 0);
  const got = found.map(({ packageFile }) => packageFile).sort();
  const branches = new Set(found.flatMap(({ updates }) => updates.map(({ branchName }) => branchName)));
  if (got.join() !== want.join() || branches.size !== 1) {
    failures.push(`${name} must move in ${want.join(' ')} by one change, and does in ${got.join(' ') || 'none'} by ${[...branches].join(' ') || 'none'}`);
  }
}

for (const file of files.filter((file) => /^\.github\/.*\.yaml$/.test(file))) {
  const want = lines(file, '^[- ]*uses: [^.]').length;
  const got = all.filter(({ manager, packageFile, depType }) => manager === 'github-actions' && packageFile === file && depType === 'action').length;
  if (got !== want) failures.push(`${file}: Renovate finds ${got} actions, and there are ${want}`);
}

const hosts = Object.keys(log.find((entry) => entry.msg === 'HTTP statistics')?.hosts ?? {});
if (hosts.join() !== '127.0.0.1') failures.push(`Renovate must reach the proxy of this check and nothing else, and reached: ${hosts.join(' ') || 'nothing'}`);

if (failures.length > 0) {
  console.error(failures.join('\n'));
  process.exit(1);
}
for (const [name, file] of own) console.log(`Renovate moves ${name} by one change of ${file} and what contains it.`);
console.log(`Renovate moves common from ${current} to ${next} by one change of ${moved.size} files: ${[...moved.keys()].sort().join(' ')}`);
