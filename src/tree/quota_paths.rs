//! The paths that have a quota.

use std::collections::BTreeSet;

/// The paths, without names that are white space only: those are ignored.
#[derive(Debug, Default)]
pub(super) struct QuotaPaths(BTreeSet<String>);

impl QuotaPaths {
    /// The deepest path with a quota that is `path` or above it.
    pub fn above(&self, path: &str) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let (mut at, mut deepest) = (String::new(), 0);
        for name in names(path) {
            at.push('/');
            at.push_str(name);
            if self.0.contains(&at) {
                deepest = at.len();
            }
        }
        at.truncate(deepest);
        Some(at).filter(|at| !at.is_empty())
    }

    /// A path without names is ignored: the root's use is not limited.
    pub fn add(&mut self, path: &str) {
        let path = normal(path);
        if !path.is_empty() {
            self.0.insert(path);
        }
    }

    pub fn remove(&mut self, path: &str) {
        self.0.remove(&normal(path));
    }
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.trim_matches(|c| c <= ' ').is_empty())
}

fn normal(path: &str) -> String {
    names(path).flat_map(|name| ["/", name]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_quota_counts() {
        let mut quotas = QuotaPaths::default();
        for path in ["/a", "/a/b", "", "/", "/ ", "/x/ /y"] {
            quotas.add(path);
        }
        let above = |path| quotas.above(path);
        assert_eq!(above("/a/c").as_deref(), Some("/a"));
        assert_eq!(above("/a/b/c").as_deref(), Some("/a/b"));
        assert_eq!(above("/x/y/z").as_deref(), Some("/x/y"), "a blank name is ignored");
        assert_eq!((above("/ab"), above("/"), above("/x")), (None, None, None));
    }
}
