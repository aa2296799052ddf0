//! The tree alone: transactions go in, znodes, watches and snapshots come out.

mod tree {
    mod freeze;
    mod reads;
    mod replay;
    mod watches;
}
