//! A file of the disk in memory: its bytes as they are read, and those that a power cut leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub const PAGE: usize = 4096;

type Page = Arc<[u8; PAGE]>;
pub type Pages = BTreeMap<u64, Page>;

#[derive(Clone, Debug, Default)]
pub struct Inode {
    pub live: Pages,
    pub durable: Pages,
    /// Pages whose live bytes may differ from the durable ones.
    pub dirty: BTreeSet<u64>,
    pub live_len: u64,
    pub durable_len: u64,
}

impl Inode {
    pub fn write(&mut self, at: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let (page, from) = place(at + done as u64);
            let len = (PAGE - from).min(bytes.len() - done);
            let held = self.live.entry(page).or_insert_with(|| Arc::new([0; PAGE]));
            Arc::make_mut(held)[from..from + len].copy_from_slice(&bytes[done..done + len]);
            self.dirty.insert(page);
            done += len;
        }
        self.live_len = self.live_len.max(at + bytes.len() as u64);
    }

    pub fn set_len(&mut self, len: u64) {
        if len < self.live_len {
            let gone: Vec<u64> =
                self.live.range(len.div_ceil(PAGE as u64)..).map(|(&page, _)| page).collect();
            self.dirty.extend(&gone);
            cut(&mut self.live, len);
            self.dirty.insert(place(len).0);
        }
        self.live_len = len;
    }

    pub fn sync(&mut self) {
        for page in std::mem::take(&mut self.dirty) {
            self.sync_page(page);
        }
        self.durable_len = self.live_len;
        cut(&mut self.durable, self.durable_len);
    }

    fn sync_page(&mut self, page: u64) {
        match self.live.get(&page) {
            Some(bytes) => self.durable.insert(page, bytes.clone()),
            None => self.durable.remove(&page),
        };
    }

    /// A sync that fails: every second page reaches the disk, and none counts as unsynced any more.
    pub fn sync_in_part(&mut self) {
        for page in std::mem::take(&mut self.dirty).into_iter().skip(1).step_by(2) {
            self.sync_page(page);
        }
    }

    /// The length stays: it is no page.
    pub fn forget_clean(&mut self) {
        let Self { live, durable, dirty, live_len, .. } = self;
        live.retain(|page, _| dirty.contains(page));
        let clean = durable.iter().filter(|(page, _)| !dirty.contains(page));
        live.extend(clean.map(|(page, bytes)| (*page, bytes.clone())));
        cut(live, *live_len);
    }

    pub fn crash(&self, unit: usize, keep: &mut impl FnMut() -> bool) -> Self {
        let mut pages = self.durable.clone();
        for &page in &self.dirty {
            let zeros = Arc::new([0; PAGE]);
            let live = self.live.get(&page).unwrap_or(&zeros);
            let mut found = self.durable.get(&page).unwrap_or(&zeros).clone();
            for start in (0..PAGE).step_by(unit) {
                if keep() {
                    Arc::make_mut(&mut found)[start..start + unit]
                        .copy_from_slice(&live[start..start + unit]);
                }
            }
            pages.insert(page, found);
        }
        let len = if keep() { self.live_len } else { self.durable_len };
        cut(&mut pages, len);
        Self {
            live: pages.clone(),
            durable: pages,
            dirty: BTreeSet::new(),
            live_len: len,
            durable_len: len,
        }
    }
}

/// Page number and offset in it.
pub fn place(at: u64) -> (u64, usize) {
    (at / PAGE as u64, (at % PAGE as u64) as usize)
}

/// Drops the pages after `len` and fills the rest of the last page with zeros: a file extended again later reads as
/// zeros there.
fn cut(pages: &mut Pages, len: u64) {
    pages.split_off(&len.div_ceil(PAGE as u64));
    let (page, from) = place(len);
    if let Some(bytes) = pages.get_mut(&page)
        && 0 < from
    {
        Arc::make_mut(bytes)[from..].fill(0);
    }
}
