//! Quotas: what is below a path is counted in `/zookeeper/quota<path>/zookeeper_stats`, and compared with
//! `/zookeeper/quota<path>/zookeeper_limits` (P-82).
//!
//! A path has a quota after its limits znode is created; each write below it changes the counts of the deepest such path.
//! The counts change without a transaction and without a new version, on every server alike, and no digest covers them.
//!
//! Text that is not a list of numbers makes a Java server exit as soon as something below that path is written. Here
//! unreadable counts are computed again instead.
//!
//! Source: `DataTree`, `Quotas`, `StatsTrack`, `PathTrie`, ZooKeeper 3.9.5.

use super::{NO_NODE, NodeId, Tree};
use std::collections::BTreeMap;
use std::fmt;

const QUOTA: &str = "/zookeeper/quota";
const LIMITS: &str = "zookeeper_limits";
const STATS: &str = "zookeeper_stats";

const COUNT: &str = "count";
const COUNT_HARD: &str = "countHardLimit";
const BYTES: &str = "bytes";
const BYTES_HARD: &str = "byteHardLimit";

/// Numbers by name, as limits and counts are written: `count=4,bytes=5=;byteHardLimit=10`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Track(BTreeMap<String, i64>);

impl Track {
    /// `None`: the data can't be parsed. Empty data is a text without numbers, but null data is not.
    fn parse(data: Option<&[u8]>) -> Option<Self> {
        let text = String::from_utf8_lossy(data?);
        let mut values = BTreeMap::new();
        // Java's split drops empty pieces at the end, but not at the start.
        let text = text.trim_end_matches([',', ';']);
        if text.is_empty() {
            return Some(Self::default());
        }
        let mut after_separator = false;
        for pair in text.split([',', ';']) {
            if std::mem::replace(&mut after_separator, true) && pair.is_empty() {
                continue; // A run of separators is one.
            }
            let mut parts = pair.trim_end_matches('=').split('=');
            let (name, value) = (parts.next()?, parts.next()?);
            let value = if value.is_empty() { -1 } else { value.parse().ok()? };
            values.insert(name.to_owned(), value);
        }
        Some(Self(values))
    }

    /// -1 for none.
    fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(-1)
    }

    fn set(&mut self, name: &str, value: i64) {
        self.0.insert(name.to_owned(), value);
    }
}

impl fmt::Display for Track {
    /// The seemingly misplaced `=` makes servers before 3.7 ignore what follows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{COUNT}={},{BYTES}={}", self.get(COUNT), self.get(BYTES))?;
        let mut others = self.0.iter().filter(|(name, _)| !matches!(&***name, COUNT | BYTES));
        let Some((name, value)) = others.next() else { return Ok(()) };
        write!(f, "=;{name}={value}")?;
        others.try_for_each(|(name, value)| write!(f, ";{name}={value}"))
    }
}

/// A limit that a write would exceed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Exceeded {
    /// The path that has the quota.
    pub path: String,
    pub what: &'static str,
    /// The usage with the write.
    pub used: i64,
    pub limit: i64,
    /// The write is refused, not only logged.
    pub hard: bool,
}

/// Limits and counts of the quotas of one namespace; `None` where there is no such znode.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct QuotaTotals {
    /// Limit on znodes: the hard limit if one is set, else the soft one; -1: no limit.
    pub count_limit: Option<i64>,
    /// The same of bytes.
    pub bytes_limit: Option<i64>,
    pub count_usage: Option<i64>,
    pub bytes_usage: Option<i64>,
}

/// Limits or counts can't be parsed as pairs of a name and a number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unreadable;

impl Tree {
    /// The limits above `path` that a write would exceed, counted without pending writes (P-44).
    ///
    /// * `count`: znodes that the write adds; `bytes`: bytes of data that it adds, or removes if negative.
    ///
    /// # Errors
    /// [`Unreadable`], which Java answers with -5.
    ///
    /// Source: `ZooKeeperServer.checkQuota`.
    pub fn check_quota(
        &self,
        path: &str,
        count: i64,
        bytes: i64,
    ) -> Result<Vec<Exceeded>, Unreadable> {
        let Some(path) = self.quotas.above(path) else { return Ok(Vec::new()) };
        let track = |name| {
            let id = self.find(&format!("{QUOTA}{path}/{name}"))?;
            Some(Track::parse(self.znode(id).data().bytes()).ok_or(Unreadable))
        };
        let Some(limits) = track(LIMITS).transpose()? else { return Ok(Vec::new()) };
        let limit = |hard, soft| match (limits.get(hard), limits.get(soft)) {
            (0.., _) => Some((true, limits.get(hard))),
            (_, 0..) => Some((false, limits.get(soft))),
            _ => None,
        };
        let checks =
            [(COUNT, count, limit(COUNT_HARD, COUNT)), (BYTES, bytes, limit(BYTES_HARD, BYTES))];
        if checks.iter().all(|(_, more, limit)| *more == 0 || limit.is_none()) {
            return Ok(Vec::new());
        }
        let Some(used) = track(STATS).transpose()? else { return Ok(Vec::new()) };
        let exceeded = checks.into_iter().filter_map(|(what, more, limit)| {
            let (hard, limit) = limit.filter(|_| more != 0)?;
            let used = used.get(what).wrapping_add(more);
            let path = path.clone();
            (used > limit).then_some(Exceeded { path, what, used, limit, hard })
        });
        Ok(exceeded.collect())
    }

    /// Counts a created znode with `bytes` of data. It may be the limits or stats znode of a quota itself.
    pub(super) fn quota_of_created(&mut self, path: &str, bytes: usize) {
        if let Some(below) = path.strip_prefix(QUOTA)
            && let Some((of, name)) = below.rsplit_once('/')
        {
            match name {
                LIMITS => self.quotas.add(of),
                STATS => self.count_anew(of),
                _ => {}
            }
        }
        self.count_in_quota(path, bytes as i64, 1);
    }

    pub(super) fn quota_of_deleted(&mut self, path: &str, bytes: usize) {
        if path.starts_with("/zookeeper")
            && let Some((parent, LIMITS)) = path.rsplit_once('/')
            // As Java, which cuts off as many characters as `/zookeeper/quota` has, whatever they are.
            && let Some((at, _)) = parent.char_indices().nth(QUOTA.len())
        {
            self.quotas.remove(&parent[at..]);
        }
        self.count_in_quota(path, -(bytes as i64), -1);
    }

    pub(super) fn count_in_quota(&mut self, path: &str, bytes: i64, count: i64) {
        let Some(path) = self.quotas.above(path) else { return };
        let Some(id) = self.find(&format!("{QUOTA}{path}/{STATS}")) else { return };
        let Some(mut track) = Track::parse(self.znode(id).data().bytes()) else {
            return self.count_anew(&path);
        };
        track.set(COUNT, track.get(COUNT).wrapping_add(count));
        track.set(BYTES, track.get(BYTES).wrapping_add(bytes));
        self.set_data(id, Some(track.to_string().as_bytes()), |_| ());
    }

    /// Counts what is below `path` again and writes its stats znode, if there is one.
    fn count_anew(&mut self, path: &str) {
        let Some(id) = self.find(&format!("{QUOTA}{path}/{STATS}")) else { return };
        let (mut count, mut bytes) = (0, 0);
        if let Some(top) = self.find(path) {
            self.walk(top, |tree, id| {
                count += 1;
                bytes += tree.nodes.get(id).data_bytes() as i64;
            });
        }
        let mut track = Track::default();
        track.set(COUNT, count);
        track.set(BYTES, bytes);
        self.set_data(id, Some(track.to_string().as_bytes()), |_| ());
    }

    /// After a load: finds the quotas, and counts what is below each (D-24).
    pub(super) fn set_up_quotas(&mut self) {
        let Some(top) = self.find(QUOTA) else { return };
        let limits = format!("/{LIMITS}");
        let mut found = Vec::new();
        self.walk(top, |tree, id| {
            let path = tree.path(id);
            if tree.nodes.get(id).first_child == NO_NODE && path.ends_with(&limits) {
                let of = path.split_once(&limits).map_or("", |(before, _)| before);
                found.push(of.strip_prefix(QUOTA).unwrap_or_default().to_owned());
            }
        });
        for path in found {
            self.count_anew(&path);
            self.quotas.add(&path);
        }
    }

    /// Limits and counts of all quotas, added up by the first name of their paths.
    ///
    /// Source: `QuotaMetricsUtils`, where a text that is no list of numbers makes the whole answer fail.
    pub fn quota_totals(&self) -> BTreeMap<String, QuotaTotals> {
        let mut totals: BTreeMap<String, QuotaTotals> = BTreeMap::new();
        let Some(top) = self.find(QUOTA) else { return totals };
        self.walk(top, |tree, id| {
            let (path, node) = (tree.path(id), tree.nodes.get(id));
            let Some((of, name @ (LIMITS | STATS))) = path.rsplit_once('/') else { return };
            let of = of.strip_prefix(QUOTA).and_then(|of| of.split('/').nth(1)).unwrap_or(name);
            let Some(track) = Track::parse(tree.znode(id).data().bytes()) else { return };
            if node.first_child != NO_NODE {
                return;
            }
            let total = totals.entry(of.to_owned()).or_default();
            let add = |to: &mut Option<i64>, more| {
                *to = Some(to.unwrap_or(0).wrapping_add(more));
            };
            if name == STATS {
                add(&mut total.count_usage, track.get(COUNT));
                add(&mut total.bytes_usage, track.get(BYTES));
                return;
            }
            let limit = |hard, soft| match track.get(hard) {
                limit @ 0.. => limit,
                _ => track.get(soft),
            };
            add(&mut total.count_limit, limit(COUNT_HARD, COUNT));
            add(&mut total.bytes_limit, limit(BYTES_HARD, BYTES));
        });
        totals
    }

    /// Visits a znode and all below it.
    fn walk(&self, top: NodeId, mut visit: impl FnMut(&Self, NodeId)) {
        let mut left = vec![top];
        while let Some(id) = left.pop() {
            visit(self, id);
            let mut child = self.nodes.get(id).first_child;
            while child != NO_NODE {
                left.push(child);
                child = self.nodes.get(child).next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<String> {
        Track::parse(Some(text.as_bytes())).map(|track| track.to_string())
    }

    // rows: P-82
    #[test]
    fn quota_texts_are_read_and_written_as_java_does() {
        let nothing = "count=-1,bytes=-1";
        for (text, expected) in [
            ("", nothing),
            (",;,", nothing),
            ("count=4", "count=4,bytes=-1"),
            ("bytes=5,count=4;", "count=4,bytes=5"),
            ("count=1,count=2,,;bytes=3=4", "count=2,bytes=3"),
            ("count==7,bytes=+5", "count=-1,bytes=5"),
            (
                "count=4,bytes=5=;countHardLimit=10;byteHardLimit=11",
                "count=4,bytes=5=;byteHardLimit=11;countHardLimit=10",
            ),
            ("x=1;=2", "count=-1,bytes=-1=;=2;x=1"),
        ] {
            assert_eq!(parse(text).as_deref(), Some(expected), "{text:?}");
        }
        for text in
            [",count=4", "count", "count=", "count=x", "=", "count=1, bytes=2.0", "\u{fffd}"]
        {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert_eq!(Track::parse(None), None);
    }

    // rows: M-24
    #[test]
    fn quota_totals_and_data_size_follow_every_change() {
        let mut tree = Tree::new(crate::tree::Options::default());
        let quota = "/zookeeper/quota/app";
        let (limits, stats) = (format!("{quota}/{LIMITS}"), format!("{quota}/{STATS}"));
        for path in ["/app", "/app/sub", quota, &limits, &stats] {
            tree.insert_system(path, crate::model::OPEN_ACL, 0);
            tree.quota_of_created(path, 0);
        }
        let mut set = |path: &str, data: &[u8]| {
            let id = tree.find(path).unwrap();
            tree.set_data(id, Some(data), |_| {});
            tree.count_in_quota(path, data.len() as i64, 0);
        };
        set(&limits, b"count=7,bytes=3=;byteHardLimit=20");
        set("/app/sub", b"12345");
        let totals = QuotaTotals {
            count_limit: Some(7),
            bytes_limit: Some(20),
            count_usage: Some(2),
            bytes_usage: Some(5),
        };
        assert_eq!(tree.quota_totals(), BTreeMap::from([("app".to_owned(), totals)]));
        let mut size = 0;
        tree.walk(tree.root, |tree, id| {
            size += tree.path(id).len() + tree.nodes.get(id).data_bytes();
        });
        assert_eq!(tree.data_size(), size as u64);
    }
}
