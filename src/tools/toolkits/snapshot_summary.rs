//! `SnapshotRecursiveSummary`: children and bytes of data below each inner znode.

use std::path::Path;

use serde_json::json;

use super::outline::Outline;
use super::{Failed, INVALID_INVOCATION, Outcome, Streams, snapshot_file};

const USAGE: &str = "\
USAGE:


SnapshotRecursiveSummary  <snapshot_file>  <starting_node>  <max_depth>


snapshot_file:    path to the zookeeper snapshot
starting_node:    the path in the zookeeper tree where the traversal should begin
max_depth:        defines the depth where the tool still writes to the output. \
0 means there is no depth limit, every non-leaf node's stats will be displayed, \
1 means it will only contain the starting node's and it's children's stats, \
2 ads another level and so on. This ONLY affects the level of details displayed, NOT the calculation.
";

/// Runs the tool. Memory: the paths of the tree.
///
/// # Errors
/// [`Failed`]: a file that can't be read or is no snapshot, a znode that is not there.
///
/// Source: `SnapshotRecursiveSummary`, ZooKeeper 3.9.5.
pub fn run(arguments: &[String], streams: &mut Streams<'_>) -> Outcome {
    let (is_json, arguments) = super::take_json(arguments);
    let parsed = match arguments.as_slice() {
        [file, start, depth] => depth.parse::<i32>().ok().map(|depth| (file, start, depth)),
        _ => None,
    };
    let Some((file, start, depth_max)) = parsed else {
        streams.err.write_all(USAGE.as_bytes())?;
        return Ok(INVALID_INVOCATION);
    };
    let path = Path::new(file);
    let (outline, damage) = Outline::read(path)?;
    snapshot_file::warn(path, damage.as_ref(), streams.err)?;
    let at = outline.find(if start == "/" { "" } else { start });
    let at = at.ok_or_else(|| Failed::Argument(format!("{file}: no znode {start}")))?;
    let top = outline.nodes[at].depth;
    for node in outline.depth_first(at).filter(|node| !node.children.is_empty()) {
        let level = node.depth - top;
        if depth_max != 0 && i64::from(depth_max) < level as i64 {
            continue;
        }
        let path = if level == 0 { start } else { &*node.path };
        if is_json {
            let object =
                json!({ "path": path, "children": node.descendants, "bytes": node.subtree_size });
            writeln!(streams.out, "{object}")?;
        } else {
            let dashes = "--".repeat(level);
            writeln!(streams.out, "{dashes} {path}")?;
            writeln!(
                streams.out,
                "{dashes}   children: {}\n{dashes}   data: {}",
                node.descendants, node.subtree_size
            )?;
        }
    }
    if !is_json {
        writeln!(streams.out)?;
    }
    Ok(0)
}
