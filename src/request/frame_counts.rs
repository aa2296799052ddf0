//! Frames sent to a client: counted when they are written, published when they are sent.

/// The kinds of frames that the metrics distinguish.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FrameKind {
    /// The reply to a request.
    Answer,
    /// A watch event.
    Event,
    /// The reply to a ping, to an authentication request, or to an operation that is not served: it counts as a frame,
    /// but its bytes do not count as bytes of replies.
    Uncounted,
    /// The reply to a connect request.
    ConnectResponse,
}

/// The frames of an [`Outgoing`](super::Outgoing). Sizes are without the four bytes of the length.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    pub packets: u64,
    /// Bytes of answers to requests.
    pub answer_bytes: u64,
    pub event_bytes: u64,
    /// Sizes of all frames but answers to connect requests; `None` without one.
    pub sizes: Option<FrameSizes>,
}

/// The last, smallest and largest of some frames.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FrameSizes {
    pub last: u32,
    pub min: u32,
    pub max: u32,
}

impl Tally {
    /// Counts a frame. Source: `ServerCnxn.serialize` and its callers, which add up what it returns, ZooKeeper 3.9.5.
    pub(super) fn note(&mut self, kind: FrameKind, len: usize) {
        self.packets += 1;
        match kind {
            FrameKind::Answer => self.answer_bytes += len as u64,
            FrameKind::Event => self.event_bytes += len as u64,
            FrameKind::Uncounted => {}
            FrameKind::ConnectResponse => return,
        }
        let len = len as u32; // A frame's length fits an i32.
        self.sizes = Some(join(self.sizes, FrameSizes { last: len, min: len, max: len }));
    }

    /// Adds the frames that were written after these.
    pub(super) fn append(&mut self, later: Self) {
        self.packets += later.packets;
        self.answer_bytes += later.answer_bytes;
        self.event_bytes += later.event_bytes;
        if let Some(sizes) = later.sizes {
            self.sizes = Some(join(self.sizes, sizes));
        }
    }
}

fn join(before: Option<FrameSizes>, later: FrameSizes) -> FrameSizes {
    before.map_or(later, |before| FrameSizes {
        last: later.last,
        min: before.min.min(later.min),
        max: before.max.max(later.max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_frame_counts_as_in_java() {
        let mut tally = Tally::default();
        tally.note(FrameKind::ConnectResponse, 37);
        assert_eq!((tally.packets, tally.sizes), (1, None));
        tally.note(FrameKind::Answer, 20);
        tally.note(FrameKind::Uncounted, 16);
        let mut later = Tally::default();
        later.note(FrameKind::Event, 36);
        tally.append(later);
        let sizes = Some(FrameSizes { last: 36, min: 16, max: 36 });
        assert_eq!(tally, Tally { packets: 4, answer_bytes: 20, event_bytes: 36, sizes });
    }
}
