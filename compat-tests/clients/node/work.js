// node-zookeeper-client, driven by commands on stdin: see `class Worker` in workers.py.
'use strict';

const readline = require('readline');
const zookeeper = require('node-zookeeper-client');

let client;

function say(...words) {
    process.stdout.write(words.join(' ') + '\n');
}

function onEvent(event) {
    say('event', event.getType(), event.getPath()); // The types have the numbers of the protocol.
}

function connect(address, timeoutMs) {
    client = zookeeper.createClient(address, { sessionTimeout: Number(timeoutMs) });
    client.on('state', (state) => say('state', state.getName() === 'SYNC_CONNECTED' ? 'SyncConnected' : 'Disconnected'));
    client.connect();
}

/** Calls a method whose last argument is `(error, answer, stat) => ...`. */
function ask(method, ...words) {
    return new Promise((resolve, reject) => {
        client[method](...words, (error, value, stat) => (error ? reject(error) : resolve({ value, stat })));
    });
}

/** Checks the version, changes the data, and makes and deletes a child, all or nothing. */
function multi(path, version) {
    const transaction = client.transaction().check(path, version).setData(path, Buffer.from('multi'), -1);
    transaction.create(path + '/m').remove(path + '/m', -1);
    return new Promise((resolve, reject) => transaction.commit((error, results) => {
        const failed = results && results.find((result) => result.err);
        if (error || failed) reject(error || { code: failed.err });
        else resolve();
    }));
}

function noNode() {
    return Object.assign(new Error('no node'), { code: zookeeper.Exception.NO_NODE });
}

async function answer([kind, ...words]) {
    const path = words[0];
    switch (kind) {
    case 'connect':
        return connect(...words);
    case 'session':
        return client.getSessionId().toString('hex');
    case 'create':
        return (await ask('create', words[1], Buffer.from(words[2]), zookeeper.ACL.OPEN_ACL_UNSAFE, Number(path))).value;
    case 'get': {
        const { value, stat } = await ask('getData', path, onEvent);
        return [value, stat.version, stat.ephemeralOwner.toString('hex')].join(' ');
    }
    case 'exists':
        if (!(await ask('exists', path, onEvent)).value) throw noNode();
        return '';
    case 'set':
        return (await ask('setData', path, Buffer.from(words[1]), Number(words[2]))).value.version;
    case 'children':
        return (await ask('getChildren', path, onEvent)).value.sort().join(',');
    case 'delete':
        await ask('remove', path, Number(words[1]));
        return '';
    case 'multi':
        return multi(path, Number(words[1]));
    case 'close':
        return client.close();
    default:
        throw new Error('unknown ' + kind);
    }
}

async function main() {
    for await (const line of readline.createInterface({ input: process.stdin })) {
        try {
            say('ok', (await answer(line.split(' '))) ?? '');
        } catch (error) {
            say('error', error.code ?? error);
        }
    }
}

main();
