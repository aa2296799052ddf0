//! The shape of a snapshot's tree: paths, sizes of data, children. Where a tool must know a whole tree, this is all it keeps.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use super::Failed;
use super::snapshot_file::{self, Part};

/// One znode.
pub struct Node {
    /// The root's is empty.
    pub path: Rc<str>,
    /// Bytes of its data.
    pub size: u64,
    pub depth: usize,
    pub parent: Option<usize>,
    /// The children, in the order of the file.
    pub children: Vec<usize>,
    /// Bytes of data in the subtree, this znode's included.
    pub subtree_size: u64,
    /// Znodes below this one.
    pub descendants: u64,
}

/// A whole tree; parents come before their children.
#[derive(Default)]
pub struct Outline {
    pub nodes: Vec<Node>,
    by_path: BTreeMap<Rc<str>, usize>,
}

impl Outline {
    /// Reads the shape of a snapshot; also returns what is wrong after its znodes.
    ///
    /// # Errors
    /// [`Failed`]: a file that can't be read, or holds no tree.
    pub fn read(path: &Path) -> Result<(Self, Option<String>), Failed> {
        let mut outline = Self::default();
        let damage = snapshot_file::each(path, |part| {
            let Part::Znode(seen) = part else { return Ok(()) };
            let size = seen.data.map_or(0, <[u8]>::len) as u64;
            let added = outline.add(&seen.path, size);
            added.map_err(|()| {
                snapshot_file::content(
                    path,
                    format!("znode \"{}\" comes before its parent", seen.path.escape_debug()),
                )
            })
        })?;
        if outline.nodes.is_empty() {
            return Err(snapshot_file::content(path, "the snapshot has no root".to_owned()));
        }
        outline.sum_up();
        Ok((outline, damage))
    }

    fn add(&mut self, path: &str, size: u64) -> Result<(), ()> {
        let parent = match path.rfind('/') {
            None if path.is_empty() => None,
            None => return Err(()),
            Some(at) => Some(*self.by_path.get(&path[..at]).ok_or(())?),
        };
        let at = self.nodes.len();
        let depth = parent.map_or(0, |parent| self.nodes[parent].depth + 1);
        if let Some(parent) = parent {
            self.nodes[parent].children.push(at);
        }
        let path: Rc<str> = path.into();
        self.by_path.insert(path.clone(), at);
        let children = Vec::new();
        self.nodes.push(Node {
            path,
            size,
            depth,
            parent,
            children,
            subtree_size: size,
            descendants: 0,
        });
        Ok(())
    }

    /// Children are summed up before their parents, since they come later.
    fn sum_up(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let Node { parent, subtree_size, descendants, .. } = self.nodes[at];
            if let Some(parent) = parent {
                self.nodes[parent].subtree_size += subtree_size;
                self.nodes[parent].descendants += descendants + 1;
            }
        }
    }

    pub fn find(&self, path: &str) -> Option<usize> {
        self.by_path.get(path).copied()
    }

    /// The znodes of the subtree at `start`, each before its descendants.
    pub fn depth_first(&self, start: usize) -> impl Iterator<Item = &Node> {
        let mut open = vec![start];
        std::iter::from_fn(move || {
            let node = &self.nodes[open.pop()?];
            open.extend(node.children.iter().rev());
            Some(node)
        })
    }
}
