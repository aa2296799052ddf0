//! What `--help` prints of ZooKeeper's toolkits and of `4lw`, whose arguments clap does not parse.

/// First lines, usage and arguments; the options of the log have no effect on these commands.
pub const TEMPLATE: &str = "{about}\n\n{usage-heading} {usage}{after-help}\n";

/// Usage of a command, and its arguments one by one.
pub struct Text {
    pub usage: &'static str,
    pub arguments: &'static str,
}

/// Each command with its text.
pub const ALL: [(&str, &Text); 7] = [
    ("txn-log", &TXN_LOG),
    ("log-chopper", &LOG_CHOPPER),
    ("snapshot-format", &SNAPSHOT_FORMAT),
    ("snapshot-compare", &SNAPSHOT_COMPARE),
    ("snapshot-summary", &SNAPSHOT_SUMMARY),
    ("purge", &PURGE),
    ("4lw", &FOUR_LETTER_WORD),
];

pub const TXN_LOG: Text = Text {
    usage: "oxkeeper txn-log [--dump] [--json] FILE\n       \
            oxkeeper txn-log --recover [--yes] [--verbose] [--json] FILE\n       \
            oxkeeper txn-log --chop --zxid ZXID [--json] FILE",
    arguments: "\
Arguments:
  FILE             A transaction log, such as version-2/log.1

Options:
  -d, --dump       Print all transactions; the default
  -r, --recover    Write FILE.fixed, with right checksums for damaged transactions; ask before each.
                   If aborted, it leaves a FILE.fixed that ends before the damage: remove it
  -y, --yes        With --recover: correct all checksums without asking
  -v, --verbose    With --recover: print all transactions, not only damaged ones
  -c, --chop       Copy the transactions up to ZXID into FILE.chopped<ZXID in decimal>
  -z, --zxid ZXID  With --chop: the last transaction to copy, decimal, or hexadecimal as 0x1f
      --json       Print one JSON object a line
  -h               Print ZooKeeper's own help of this tool
      --help       Print this help",
};

pub const LOG_CHOPPER: Text = Text {
    usage: "oxkeeper log-chopper [--json] ZXID FROM TO",
    arguments: "\
Arguments:
  ZXID        The last transaction to copy, decimal, or hexadecimal as 0x1f
  FROM        A transaction log, such as version-2/log.1
  TO          The file to write; it is replaced if it exists

Options:
      --json  Print one JSON object a line
  -h, --help  Print this help",
};

pub const SNAPSHOT_FORMAT: Text = Text {
    usage: "oxkeeper snapshot-format [-d | -json] [--json] FILE",
    arguments: "\
Arguments:
  FILE        A snapshot, such as version-2/snapshot.1; a compressed one too

Options:
  -d          Print the data of each znode too, in base64
  -json       Print the tree in the format of ncdu (ncdu -f FILE)
      --json  Print one JSON object a line
  -h, --help  Print this help",
};

pub const SNAPSHOT_COMPARE: Text = Text {
    usage: "oxkeeper snapshot-compare -l FILE -r FILE -b BYTES -n NODES [-d] [-i] [--json]",
    arguments: "\
Options:
  -l, --left FILE    A snapshot, such as version-2/snapshot.1
  -r, --right FILE   The snapshot to compare it with
  -b, --bytes BYTES  Print znodes whose data, with that of all znodes below, differ by more bytes
  -n, --nodes NODES  Print znodes below which the numbers of znodes differ by more
  -d, --debug        Print each comparison, and the znodes that differ by less
  -i, --interactive  Ask which depth or which znode to print next
      --json         Print one JSON object a line
  -h, --help         Print this help",
};

pub const SNAPSHOT_SUMMARY: Text = Text {
    usage: "oxkeeper snapshot-summary [--json] FILE ZNODE DEPTH",
    arguments: "\
Arguments:
  FILE        A snapshot, such as version-2/snapshot.1
  ZNODE       The znode to begin with; / is the whole tree
  DEPTH       Levels below ZNODE to print; 0: all

Options:
      --json  Print one JSON object a line
  -h, --help  Print this help",
};

pub const PURGE: Text = Text {
    usage: "oxkeeper purge [--json] DATALOGDIR [SNAPDIR] -n COUNT",
    arguments: "\
Arguments:
  DATALOGDIR  dataLogDir of zoo.cfg; dataDir if dataLogDir is not set
  SNAPDIR     dataDir of zoo.cfg, if dataLogDir is set

Options:
  -n COUNT    Newest snapshots to keep, with the logs that they need; at least 3
      --json  Print one JSON object for each removed file
  -h, --help  Print this help",
};

pub const FOUR_LETTER_WORD: Text = Text {
    usage: "oxkeeper 4lw [--tls-ca FILE [--tls-cert FILE --tls-key FILE]] HOST PORT WORD\n       \
            oxkeeper 4lw --tls -Dzookeeper.ssl.trustStore.location=FILE HOST PORT WORD",
    arguments: "\
Arguments:
  HOST PORT        Where the server listens for clients
  WORD             Such as srvr, ruok, stat or mntr; the server's 4lw.commands.whitelist has to have it

Options:
  --tls-ca FILE    Connect with TLS; the server's certificate has to lead to one in this PEM file, and name HOST
  --tls-cert FILE  Certificates of this client, its own first (PEM)
  --tls-key FILE   Private key of this client (PEM, not encrypted)
  --tls            Connect with TLS, with the stores that -Dzookeeper.ssl.trustStore.location,
                   -Dzookeeper.ssl.keyStore.location, .password and .passwordPath name, as for Java's clients
  -h, --help       Print this help

Exit code 1 without an answer, and if the word is not in the whitelist.",
};
