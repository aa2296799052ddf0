//! Java's loggers, and the modules here that do the same work.

/// Java's logger of the audit log.
pub(super) const AUDIT: &str = "org.apache.zookeeper.audit.Slf4jAuditLogger";

/// Java's packages and classes, without `org.apache.zookeeper`, and our modules, without `oxkeeper::`.
const LOGGERS: &[(&str, &[&str])] = &[
    ("", &[""]),
    (".server", &["server", "request", "replica", "tree", "store", "net", "member", "admin"]),
    (".server.quorum", &["zab", "member", "net::quorum", "net::election", "server::peers"]),
    (".server.quorum.QuorumPeer", &["server::role_log", "zab", "replica::role"]),
    (".server.quorum.QuorumPeerConfig", &["config"]),
    (".server.quorum.FastLeaderElection", &["zab::election", "member::elections"]),
    (".server.quorum.QuorumCnxManager", &["net::election", "member::election_connections"]),
    (".server.quorum.Leader", &["zab::leader"]),
    (".server.quorum.LearnerHandler", &["member::quorum_connection", "net::quorum"]),
    (".server.quorum.Learner", &["zab::learner"]),
    (".server.quorum.Follower", &["zab::learner"]),
    (".server.quorum.Observer", &["zab::learner"]),
    (".server.quorum.auth", &["member::quorum_sasl", "server::quorum_sasl"]),
    (".server.persistence", &["store"]),
    (".server.persistence.FileTxnLog", &["store::log", "store::log_thread"]),
    (".server.persistence.FileSnap", &["store::snapshot"]),
    (".server.persistence.FileTxnSnapLog", &["store::recover", "store::start"]),
    (".server.PurgeTxnLog", &["store::purge"]),
    (".server.DatadirCleanupManager", &["store::purge"]),
    (".server.NIOServerCnxn", &["net::client", "strangers"]),
    (".server.NIOServerCnxnFactory", &["net::client_port", "net::listener", "strangers"]),
    (".server.NettyServerCnxn", &["net::client", "strangers"]),
    (".server.NettyServerCnxnFactory", &["net::client_port", "net::tls_port", "strangers"]),
    (".server.PrepRequestProcessor", &["request"]),
    (".server.FinalRequestProcessor", &["replica::apply", "request"]),
    (".server.SessionTrackerImpl", &["replica::sessions", "request::session_tracker"]),
    (".server.ZooKeeperServer", &["replica", "request", "server"]),
    (".server.ZooKeeperSaslServer", &["request::sasl"]),
    (".server.DataTree", &["tree", "replica::digest_mismatches"]),
    (".server.ZKDatabase", &["tree", "store::recover"]),
    (".server.admin", &["admin", "server::admin_server", "net::http"]),
    (".server.auth", &["auth", "request::sasl"]),
    (".server.watch", &["tree::watch"]),
    (".server.util.OSMXBean", &["server::limits"]),
    (".common", &["net::tls"]),
    (".common.X509Util", &["net::tls"]),
    (".common.FileChangeWatcher", &["net::tls::reload"]),
    (".metrics", &["metrics", "server::metrics_port"]),
    (".audit", &["server::audit_log"]),
    (".audit.Slf4jAuditLogger", &["server::audit_log"]),
];

/// The modules of a logger, as log levels name them; none: nothing here does its work.
///
/// A class that is not known has no effect: the level of its package would apply to more than the class.
pub(super) fn modules(logger: &str) -> Vec<String> {
    let rest = logger.strip_prefix("org.apache.zookeeper");
    let known = rest.and_then(|rest| LOGGERS.iter().find(|(name, _)| *name == rest));
    let modules = known.map_or(&[][..], |(_, modules)| modules);
    let whole = |module: &&str| match *module {
        "" => "oxkeeper".to_owned(),
        module => format!("oxkeeper::{module}"),
    };
    modules.iter().map(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn loggers_have_modules_that_exist() {
        assert_eq!(modules("org.apache.zookeeper"), ["oxkeeper"]);
        assert_eq!(modules("org.apache.zookeeper.server.PurgeTxnLog"), ["oxkeeper::store::purge"]);
        assert!(
            modules("org.eclipse.jetty").is_empty() && modules("org.apache.zookeeperx").is_empty()
        );
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for module in LOGGERS.iter().flat_map(|(_, modules)| *modules) {
            let path = root.join(module.replace("::", "/"));
            let is_there = path.is_dir() || path.with_extension("rs").is_file();
            assert!(is_there || *module == "strangers", "there is no module {module}");
        }
    }
}
