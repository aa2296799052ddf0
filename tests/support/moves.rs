//! An input of a fuzzer, read as a list of choices. After its end every choice is 0.

pub struct Moves<'a>(pub &'a [u8]);

impl<'a> Moves<'a> {
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (front, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        front
    }

    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    /// A length byte and that many bytes.
    pub fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte());
        self.take(len)
    }

    /// Chooses one of these; `None` if `all` is empty.
    pub fn choose<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let choice = usize::from(self.byte());
        all.get(choice % all.len().max(1)).copied()
    }
}

/// What one input may still do that costs it no bytes.
pub struct Allowance {
    /// Long pauses cost the most of an input's processor time: the member is given each of their ticks, though all of its time limits are
    /// reached within one or two of them.
    ms: u64,
    /// Snapshots that an operator asks for. The virtual disk keeps the bytes of removed files too.
    snapshots: usize,
}

impl Allowance {
    pub const fn new(ms: u64) -> Self {
        Self { ms, snapshots: 64 }
    }

    /// Milliseconds of a pause of `ms`: fewer once the time is used up, but never none.
    pub fn pause(&mut self, ms: u64) -> u64 {
        let pause = ms.min(self.ms);
        self.ms -= pause;
        pause.max(SHORTEST_MS)
    }

    /// Whether one more snapshot may be asked for.
    pub const fn snapshot(&mut self) -> bool {
        let may = self.snapshots > 0;
        self.snapshots = self.snapshots.saturating_sub(1);
        may
    }
}

/// One tick.
const SHORTEST_MS: u64 = 5;
