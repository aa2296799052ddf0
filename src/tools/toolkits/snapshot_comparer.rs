//! `SnapshotComparer`: the differences between two snapshots, level by level.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use serde_json::json;

use super::commons_cli::{self, Known};
use super::outline::{Node, Outline};
use super::{Failed, INVALID_INVOCATION, Outcome, Streams, snapshot_file};

const KNOWN: &[Known] = &[
    Known { short: 'l', long: "left", takes_value: true, required: true },
    Known { short: 'r', long: "right", takes_value: true, required: true },
    Known { short: 'b', long: "bytes", takes_value: true, required: true },
    Known { short: 'n', long: "nodes", takes_value: true, required: true },
    Known { short: 'd', long: "debug", takes_value: false, required: false },
    Known { short: 'i', long: "interactive", takes_value: false, required: false },
];

const USAGE: &str = "\
usage: java -cp <classPath> org.apache.zookeeper.server.SnapshotComparer
 -b,--bytes <BYTETHRESHOLD>   (Required) The node data delta size threshold, in bytes, for printing the node.
 -d,--debug                   Use debug output.
 -i,--interactive             Enter interactive mode.
 -l,--left <LEFT>             (Required) The left snapshot file.
 -n,--nodes <NODETHRESHOLD>   (Required) The descendant node delta size threshold, in nodes, for printing the node.
 -r,--right <RIGHT>           (Required) The right snapshot file.
";

const PROMPT: &str = "\
- Press enter to move to print current depth layer;
- Type a number to jump to and print all nodes at a given depth;
- Enter an ABSOLUTE path to print the immediate subtree of a node. Path must start with '/'.
";

/// Runs the tool. Memory: the paths of both trees.
///
/// # Errors
/// [`Failed`]: files that can't be read or are no snapshots, thresholds that are no numbers, input that ends early.
///
/// Source: `SnapshotComparer`, ZooKeeper 3.9.5.
pub fn run(arguments: &[String], streams: &mut Streams<'_>) -> Outcome {
    let (is_json, arguments) = super::take_json(arguments);
    let parsed = match commons_cli::parse(KNOWN, &arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            writeln!(streams.err, "{error}")?;
            streams.out.write_all(USAGE.as_bytes())?;
            return Ok(INVALID_INVOCATION);
        }
    };
    let number = |short| {
        let text = parsed.value(short).unwrap_or_default();
        let number = text.parse::<i32>().map(i64::from);
        number.map_err(|_| {
            Failed::Argument(format!("For input string: {text:?}: give a number of 32 bits"))
        })
    };
    let (bytes_max, nodes_max) = (number('b')?, number('n')?);
    let is_talkative = parsed.has('d') || parsed.has('i');
    if !is_json {
        writeln!(streams.out, "Successfully parsed options!")?;
    }
    let left = load(parsed.value('l').unwrap_or_default(), is_json, streams)?;
    let right = load(parsed.value('r').unwrap_or_default(), is_json, streams)?;
    let compared = Comparison {
        left,
        right,
        bytes_max,
        nodes_max,
        is_json,
        has_debug: parsed.has('d'),
        is_talkative,
    };
    if is_json {
        (0..compared.depths()).try_for_each(|depth| compared.level(depth, streams.out))?;
        return Ok(0);
    }
    compared.totals(streams.out)?;
    if parsed.has('i') {
        compared.ask(streams)?;
    } else {
        compared.all(streams.out)?;
    }
    writeln!(streams.out, "All layers compared.")?;
    Ok(0)
}

/// Reads one tree, and prints how long that took.
fn load(name: &str, is_json: bool, streams: &mut Streams<'_>) -> Result<Tree, Failed> {
    let (path, begun) = (Path::new(name), Instant::now());
    let (outline, damage) = Outline::read(path)?;
    snapshot_file::warn(path, damage.as_ref(), streams.err)?;
    let (file, read) = (path.file_name().unwrap_or_default().display(), begun.elapsed());
    let tree = Tree::new(outline);
    if !is_json {
        let processed = (begun.elapsed() - read).as_secs_f64();
        writeln!(
            streams.out,
            "Deserialized snapshot in {file} in {:.6} seconds",
            read.as_secs_f64()
        )?;
        writeln!(streams.out, "Processed data tree in {processed:.6} seconds")?;
    }
    Ok(tree)
}

/// A tree with its znodes by depth, each level sorted as Java sorts strings.
struct Tree {
    outline: Outline,
    levels: Vec<Vec<usize>>,
}

impl Tree {
    fn new(outline: Outline) -> Self {
        let mut levels: Vec<Vec<usize>> = Vec::new();
        for (at, node) in outline.nodes.iter().enumerate() {
            if levels.len() <= node.depth {
                levels.push(Vec::new());
            }
            levels[node.depth].push(at);
        }
        let mut tree = Self { outline, levels };
        let mut levels = std::mem::take(&mut tree.levels);
        levels.iter_mut().for_each(|level| tree.sort(level));
        tree.levels = levels;
        tree
    }

    fn sort(&self, nodes: &mut [usize]) {
        let path = |at: usize| self.outline.nodes[at].path.encode_utf16();
        nodes.sort_by(|a, b| path(*a).cmp(path(*b)));
    }

    fn level(&self, depth: usize) -> Vec<&Node> {
        self.levels.get(depth).into_iter().flatten().map(|at| &self.outline.nodes[*at]).collect()
    }

    /// The children of a znode; `None`: there is no such znode.
    fn children(&self, path: &str) -> Option<Vec<&Node>> {
        let mut children = self.outline.nodes[self.outline.find(path)?].children.clone();
        self.sort(&mut children);
        Some(children.into_iter().map(|at| &self.outline.nodes[at]).collect())
    }

    fn totals(&self, out: &mut dyn Write) -> Result<(), Failed> {
        let root = &self.outline.nodes[0];
        let (count, size, depths) =
            (self.outline.nodes.len(), root.subtree_size, self.levels.len());
        writeln!(out, "Node count: {count}\nTotal size: {size}\nMax depth: {depths}")?;
        for (depth, level) in self.levels.iter().enumerate() {
            writeln!(out, "Count of nodes at depth {depth}: {}", level.len())?;
        }
        Ok(writeln!(out)?)
    }
}

struct Comparison {
    left: Tree,
    right: Tree,
    bytes_max: i64,
    nodes_max: i64,
    is_json: bool,
    has_debug: bool,
    /// Znodes that differ too little are named too.
    is_talkative: bool,
}

impl Comparison {
    fn depths(&self) -> usize {
        self.left.levels.len().max(self.right.levels.len())
    }

    fn totals(&self, out: &mut dyn Write) -> Result<(), Failed> {
        self.left.totals(out)?;
        self.right.totals(out)
    }

    fn thresholds(&self, out: &mut dyn Write) -> Result<(), Failed> {
        let (bytes, nodes) = (self.bytes_max, self.nodes_max);
        Ok(writeln!(
            out,
            "Printing analysis for nodes difference larger than {bytes} bytes or node count difference larger than {nodes}."
        )?)
    }

    fn all(&self, out: &mut dyn Write) -> Result<(), Failed> {
        self.thresholds(out)?;
        (0..self.depths()).try_for_each(|depth| {
            writeln!(out, "Analysis for depth {depth}")?;
            self.level(depth, out)
        })
    }

    fn ask(&self, streams: &mut Streams<'_>) -> Result<(), Failed> {
        let (depths, mut current) = (self.depths(), 0);
        while current < depths {
            write!(streams.out, "Current depth is {current}\n{PROMPT}")?;
            streams.out.flush()?;
            let input = super::line(streams.input)?;
            let out = &mut *streams.out;
            self.thresholds(out)?;
            if input.is_empty() {
                writeln!(out, "Analysis for depth {current}")?;
                self.level(current, out)?;
                current += 1;
            } else if input.starts_with('/') {
                writeln!(out, "Analysis for node {input}")?;
                self.subtree(&input, out)?;
            } else if let Ok(depth) = input.parse::<i32>() {
                let Some(depth) = usize::try_from(depth).ok().filter(|depth| *depth < depths)
                else {
                    writeln!(out, "Depth must be in range [0, {}]", depths - 1)?;
                    continue;
                };
                current = depth;
                writeln!(out, "Analysis for depth {current}")?;
                self.level(current, out)?;
            } else {
                writeln!(
                    out,
                    "Input {input} is not valid. Depth must be in range [0, {}]. Path must be an absolute path which starts with '/'.",
                    depths - 1
                )?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn subtree(&self, path: &str, out: &mut dyn Write) -> Result<(), Failed> {
        match (self.left.children(path), self.right.children(path)) {
            (None, None) => {
                Ok(writeln!(out, "Path {path} is neither found in left tree nor right tree.")?)
            }
            (left, right) => self.nodes(&left.unwrap_or_default(), &right.unwrap_or_default(), out),
        }
    }

    fn level(&self, depth: usize, out: &mut dyn Write) -> Result<(), Failed> {
        self.nodes(&self.left.level(depth), &self.right.level(depth), out)
    }

    /// Merges two sorted lists.
    fn nodes(&self, left: &[&Node], right: &[&Node], out: &mut dyn Write) -> Result<(), Failed> {
        let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(a), Some(b)) => {
                    let order = a.path.encode_utf16().cmp(b.path.encode_utf16());
                    if self.has_debug && !self.is_json {
                        let text = match order {
                            std::cmp::Ordering::Less => "left is less",
                            std::cmp::Ordering::Greater => "right is less",
                            std::cmp::Ordering::Equal => "same",
                        };
                        writeln!(out, "Comparing {} to {}\n{text}", a.path, b.path)?;
                    }
                    order
                }
            };
            let a = if order.is_le() { left.next() } else { None };
            let b = if order.is_ge() { right.next() } else { None };
            match (a, b) {
                (Some(a), Some(b)) => self.both(a, b, out)?,
                (Some(one), None) => self.one(one, "left", out)?,
                (None, Some(one)) => self.one(one, "right", out)?,
                (None, None) => {}
            }
        }
    }

    fn one(&self, node: &Node, tree: &str, out: &mut dyn Write) -> Result<(), Failed> {
        let Node { path, subtree_size: size, descendants: count, .. } = node;
        if self.bytes_max < *size as i64 || self.nodes_max < *count as i64 {
            if self.is_json {
                let object = json!({ "path": &**path, "only_in": tree, "bytes": size, "descendants": count });
                writeln!(out, "{object}")?;
            } else {
                writeln!(
                    out,
                    "Node {path} found only in {tree} tree. Descendant size: {size}. Descendant count: {count}"
                )?;
            }
        } else if self.is_talkative && !self.is_json {
            writeln!(out, "Filtered {tree} node {path} of size {size}")?;
        }
        Ok(())
    }

    fn both(&self, left: &Node, right: &Node, out: &mut dyn Write) -> Result<(), Failed> {
        let (path, a, b) = (&left.path, left.subtree_size, right.subtree_size);
        let bytes = b as i64 - a as i64;
        let count = right.descendants as i64 - left.descendants as i64;
        if self.bytes_max < bytes.abs() || self.nodes_max < count.abs() {
            if self.is_json {
                let object = json!({ "path": &**path, "only_in": null, "bytes": bytes, "descendants": count });
                writeln!(out, "{object}")?;
            } else {
                writeln!(
                    out,
                    "Node {path} found in both trees. Delta: {bytes} bytes, {count} descendants"
                )?;
            }
        } else if self.is_talkative && !self.is_json {
            writeln!(out, "Filtered node {path} of left size {a}, right size {b}")?;
        }
        Ok(())
    }
}
