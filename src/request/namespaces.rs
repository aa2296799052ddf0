//! How much was read or written below each znode of the first level.

use crate::model::path;

/// Names that a connection keeps between two turns: most clients use one namespace.
const KEPT: usize = 4;

/// Bytes per namespace since they were last published. Nothing is allocated for a name that came before.
#[derive(Clone, Debug, Default)]
pub struct Namespaces {
    all: Vec<Namespace>,
}

/// The reads or writes in one namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Namespace {
    pub name: Box<str>,
    /// Reads or writes; 0 if only the name is kept.
    pub count: u64,
    pub sum_bytes: u64,
    pub min_bytes: u64,
    pub max_bytes: u64,
}

impl Namespaces {
    /// Counts one read or write of `path` with `bytes` besides the path; the root belongs to no namespace.
    ///
    /// Source: `DataTree.updateReadStat` and `updateWriteStat`, ZooKeeper 3.9.5.
    pub fn note(&mut self, path: &str, bytes: usize) {
        let Some(names) = path.strip_prefix('/') else { return };
        let bytes = (path::utf16_len(path) + bytes) as u64;
        // Names that came before are compared as a whole: to look for the end of the first name costs more than all else here.
        let found = self.all.iter_mut().rev().find(|space| is_of(&space.name, names));
        let space = match found {
            Some(space) => space,
            None => {
                let Some(name) = first_name(names) else { return };
                self.all.push(Namespace::new(name));
                self.all.last_mut().expect("just pushed")
            }
        };
        space.count += 1;
        space.sum_bytes += bytes;
        space.min_bytes = space.min_bytes.min(bytes);
        space.max_bytes = space.max_bytes.max(bytes);
    }

    /// Hands out all that has been counted, and sets the counts to 0.
    pub fn publish(&mut self, mut sink: impl FnMut(&Namespace)) {
        for space in &mut self.all {
            if space.count > 0 {
                sink(space);
                space.clear();
            }
        }
        self.all.truncate(KEPT);
    }
}

impl Namespace {
    fn new(name: &str) -> Self {
        Self { name: name.into(), count: 0, sum_bytes: 0, min_bytes: u64::MAX, max_bytes: 0 }
    }

    const fn clear(&mut self) {
        (self.count, self.sum_bytes, self.min_bytes, self.max_bytes) = (0, 0, u64::MAX, 0);
    }
}

/// * `names`: a path without its first slash.
fn is_of(first_name: &str, names: &str) -> bool {
    let rest = names.as_bytes().strip_prefix(first_name.as_bytes());
    rest.is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

/// * `names`: a path without its first slash.
fn first_name(names: &str) -> Option<&str> {
    names.split('/').next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_count_paths_under_their_first_name() {
        let mut spaces = Namespaces::default();
        for (path, bytes) in [("/app", 6), ("/app/a/b", 2), ("/", 9), ("", 9), ("/\u{e9}", 0)] {
            spaces.note(path, bytes);
        }
        spaces.note("//app", 9);
        let mut seen = Vec::new();
        spaces.publish(|space| seen.push(space.clone()));
        let app = Namespace {
            count: 2,
            sum_bytes: 20,
            min_bytes: 10,
            max_bytes: 10,
            ..Namespace::new("app")
        };
        let other = Namespace {
            count: 1,
            sum_bytes: 2,
            min_bytes: 2,
            max_bytes: 2,
            ..Namespace::new("\u{e9}")
        };
        assert_eq!(seen, [app, other]);
        spaces.publish(|space| panic!("{space:?} was published already"));
        spaces.note("/apple", 0);
        spaces.publish(|space| assert_eq!(&*space.name, "apple"));
        for number in 0..100 {
            spaces.note(&format!("/{number}"), 1);
        }
        spaces.publish(|_| {});
        assert_eq!(spaces.all.len(), KEPT, "an idle connection stays small");
    }
}
