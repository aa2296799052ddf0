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
