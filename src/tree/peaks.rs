//! The largest of everything since the tree was loaded. Each is raised where it grows, so that nothing is ever searched for it;
//! deleting takes nothing back.

/// Bytes of an empty name in a reply.
const NAME_BYTES: u64 = 4;

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Peaks {
    /// Data of one znode.
    pub data_bytes: u32,
    /// Children of one znode.
    pub children: u32,
    /// About the names of that many children in a reply: as if each name were as long as the newest.
    pub list_bytes: u64,
    /// Creations below one znode: the number of its next sequential child.
    pub sequence: i32,
}

impl Peaks {
    pub fn note_data(&mut self, data: Option<&[u8]>) {
        self.data_bytes = self.data_bytes.max(data.map_or(0, <[u8]>::len) as u32);
    }

    pub fn note_sequence(&mut self, creations: i32) {
        self.sequence = self.sequence.max(creations);
    }

    /// * `name_len`: of the newest child.
    pub fn note_children(&mut self, children: u32, name_len: u32) {
        if self.children <= children {
            self.children = children;
            self.list_bytes = u64::from(children) * (u64::from(name_len) + NAME_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_only_grow_and_a_long_name_counts_until_the_next() {
        let mut peaks = Peaks::default();
        peaks.note_data(Some(b"12345"));
        peaks.note_data(None);
        peaks.note_sequence(7);
        peaks.note_sequence(-1);
        (1..=10).for_each(|children| peaks.note_children(children, 1000));
        peaks.note_children(11, 6);
        peaks.note_children(3, 500);
        let expected = Peaks { data_bytes: 5, children: 11, list_bytes: 110, sequence: 7 };
        assert_eq!(peaks, expected);
    }
}
