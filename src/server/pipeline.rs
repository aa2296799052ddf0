//! Measures how long writes take in preparation and in the log.
//!
//! Java has a thread with a queue for each. Here the driver prepares the requests of a turn together and hands them to the log
//! thread together, so a batch is measured and its requests share the figures: no clock is read for a single request.

use crate::metrics::{Registry, SizeValues, Summary};
use crate::model::{Zxid, op};
use crate::replica::Mode;
use crate::request::ClientCommand;
use crate::store::{self, worker::FlushReport};
use crate::tree::txn;
use std::collections::VecDeque;
use std::sync::Arc;

/// The records that the log thread was handed and has not flushed, and the times that are measured.
pub struct Pipeline {
    metrics: Arc<Registry>,
    unflushed: VecDeque<LogBatch>,
    /// Records in `unflushed`.
    waiting: u64,
    preparing: Shares,
    logging: Shares,
}

/// Divides a time among requests in whole milliseconds. The remainder goes to the next requests: the sums are right, although
/// most shares are zero.
#[derive(Default)]
struct Shares {
    left_us: u64,
}

impl Shares {
    fn record(&mut self, to: &Summary, took_us: u64, count: u64) {
        if count == 0 {
            return;
        }
        let all_us = self.left_us + took_us;
        self.left_us = all_us % 1000;
        let (each_ms, longer) = (all_us / 1000 / count, all_us / 1000 % count);
        to.record_many(each_ms as i64, count - longer);
        if longer > 0 {
            to.record_many(each_ms as i64 + 1, longer);
        }
    }
}

/// Requests that were prepared together.
#[derive(Default)]
pub struct Taken {
    requests: u64,
}

/// Records that the log was handed together.
pub struct LogBatch {
    /// Zxid of the last record.
    pub through: Zxid,
    pub records: u64,
    /// Monotonic microseconds.
    pub at_us: u64,
    /// The times in the headers of transactions that a voter acknowledges, in wall-clock milliseconds.
    pub births: Vec<i64>,
}

impl Pipeline {
    pub fn new(metrics: Arc<Registry>) -> Self {
        let (preparing, logging) = Default::default();
        Self { metrics, unflushed: VecDeque::new(), waiting: 0, preparing, logging }
    }

    /// Counts the requests of a command that is prepared next.
    pub fn take(&self, command: &ClientCommand, now_us: u64, taken: &mut Taken) {
        let (count, received_us) = match command {
            ClientCommand::Open(open) => (1, open.received_us),
            ClientCommand::Writes(batch) => (batch.requests.len() as u64, batch.received_us),
            ClientCommand::Reopen(_) | ClientCommand::Gone { .. } => return,
        };
        taken.requests += count;
        let waited_ms = now_us.saturating_sub(received_us) as i64 / 1000;
        self.metrics.prep_processor_queue_time_ms.record_many(waited_ms, count);
    }

    /// Records the time in which all commands of a turn were prepared.
    pub fn prepared_taken(&mut self, taken: Taken, took_us: impl FnOnce() -> u64) {
        if taken.requests > 0 {
            self.metrics.prep_processor_queue_size.record(taken.requests as i64);
            self.prepared(taken.requests, took_us());
        }
    }

    /// Records that preparing `requests` requests took `took_us`.
    pub fn prepared(&mut self, requests: u64, took_us: u64) {
        self.preparing.record(&self.metrics.prep_process_time, took_us, requests);
    }

    /// As `prepared`, for requests of the server itself or of its learners, which wait in no queue.
    pub fn prepared_own(&mut self, requests: u64, took_us: u64) {
        if requests > 0 {
            self.metrics.prep_processor_queue_time_ms.record_many(0, requests);
            self.metrics.prep_processor_queue_size.record(requests as i64);
            self.prepared(requests, took_us);
        }
    }

    /// Records that preparing the ends of `sessions` sessions took `took_us`.
    pub fn closed(&self, sessions: u64, took_us: u64) {
        if sessions > 0 {
            let each_ms = took_us as i64 / sessions as i64 / 1000;
            self.metrics.close_session_prep_time.record_many(each_ms, sessions);
        }
    }

    /// Records that the log thread was handed records.
    ///
    /// * `prepared_us`: when they were prepared, if this server prepared them.
    pub fn handed_over(&mut self, batch: LogBatch, prepared_us: Option<u64>) {
        let records = batch.records;
        // Both `*_request_queued` counters: requests without a transaction are added where the counters are printed.
        if let Some(prepared_us) = prepared_us {
            let took_ms = batch.at_us.saturating_sub(prepared_us) as i64 / 1000;
            self.metrics.proposal_process_time.record_many(took_ms, records);
            self.metrics.prep_processor_request_queued.add(records);
        }
        self.metrics.sync_processor_request_queued.add(records);
        self.metrics.sync_processor_queue_size.record(self.waiting as i64);
        self.waiting += records;
        self.unflushed.push_back(batch);
    }

    /// Records that the log thread has flushed.
    pub fn flushed(&mut self, report: &FlushReport, now_us: u64, wall_ms: i64) {
        let metrics = &self.metrics;
        let sync_us = report.sync_took.unwrap_or_default().as_micros() as u64;
        let sync_ms = sync_us as i64 / 1000;
        if report.sync_took.is_some() {
            metrics.fsynctime.record(sync_ms);
            metrics.flush_times.record(sync_us, 1);
        }
        if report.slow {
            metrics.slow_flushes.increment();
        }
        metrics.sync_processor_batch_size.record(i64::from(report.records));
        metrics.sync_processor_queue_flush_time_ms.record(sync_ms);
        // As Java: the time of the flush is not included, except in the last record of a full batch.
        let (records, last) = (u64::from(report.records.max(1)), u64::from(report.full));
        let write_us = report.write_took.as_micros() as u64;
        let each_us = write_us / records;
        self.logging.record(&metrics.sync_process_time, write_us - each_us * last, records - last);
        self.logging.record(&metrics.sync_process_time, each_us + sync_us, last);
        // A flush may end in the middle of records that were handed over together.
        while let Some(batch) = self.unflushed.front()
            && batch.through <= report.through
        {
            let with_log_us = now_us.saturating_sub(batch.at_us);
            let waited_ms = with_log_us.saturating_sub(sync_us) as i64 / 1000;
            metrics.sync_processor_queue_time_ms.record_many(waited_ms, batch.records);
            metrics
                .sync_processor_queue_and_flush_time_ms
                .record_many(with_log_us as i64 / 1000, batch.records);
            let ages_ms = batch.births.iter().map(|born_ms| wall_ms - born_ms);
            ages_ms
                .filter(|age_ms| 0 <= *age_ms)
                .for_each(|age_ms| metrics.proposal_ack_creation_latency.record(age_ms));
            self.waiting -= batch.records;
            self.unflushed.pop_front();
        }
    }
}

/// Whether a command ends a session.
pub fn closes(command: &ClientCommand) -> bool {
    let last = |batch: &crate::request::Batch| batch.requests.last().map(|asked| asked.op);
    matches!(command, ClientCommand::Writes(batch) if last(batch) == Some(op::CLOSE_SESSION))
}

/// Records that one turn hands to the log thread, for the metrics.
pub struct HandedOver {
    mode: Mode,
    pub records: u64,
    pub through: Zxid,
    /// The times in the headers of a voter's transactions, in wall-clock milliseconds.
    pub births: Vec<i64>,
    pub sizes: Option<SizeValues>,
}

impl HandedOver {
    pub const fn new(mode: Mode) -> Self {
        Self { mode, records: 0, through: Zxid::ZERO, births: Vec::new(), sizes: None }
    }

    pub fn note(&mut self, command: &store::Command) {
        let store::Command::Append { zxid, entry } = command else { return };
        (self.records, self.through) = (self.records + 1, *zxid);
        if matches!(self.mode, Mode::Leading | Mode::Following) {
            self.births.extend(txn::born_ms(entry));
        }
        if self.mode == Mode::Leading {
            let size = entry.len() as i64;
            let seen = self.sizes.get_or_insert(SizeValues { last: size, min: size, max: size });
            *seen = SizeValues { last: size, min: seen.min.min(size), max: seen.max.max(size) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn report(through: i64, records: u32, write_us: u64, sync_ms: u64) -> FlushReport {
        FlushReport {
            through: Zxid::from_wire(through).unwrap(),
            records,
            bytes: 0,
            file_len: 0,
            write_took: Duration::from_micros(write_us),
            sync_took: Some(Duration::from_millis(sync_ms)),
            full: false,
            slow: false,
        }
    }

    // rows: M-01 M-04
    #[test]
    fn each_record_waits_and_is_flushed_once() {
        let metrics = Arc::new(Registry::default());
        let mut pipeline = Pipeline::new(metrics.clone());
        let zxid = |raw| Zxid::from_wire(raw).unwrap();
        pipeline.prepared(4, 8_000);
        let batch = |through, records, at_us| {
            let births = vec![990; records];
            LogBatch { through: zxid(through), records: records as u64, at_us, births }
        };
        pipeline.handed_over(batch(4, 4, 3_000), Some(1_000));
        pipeline.handed_over(batch(6, 2, 5_000), Some(5_000));
        pipeline.flushed(&report(4, 4, 1_700, 8), 13_000, 1_000);
        pipeline.flushed(&report(6, 2, 2_300, 1), 15_000, 1_005);
        let count = |summary: crate::metrics::SummaryValues| (summary.count, summary.sum);
        assert_eq!(count(metrics.prep_process_time.values()), (4, 8));
        assert_eq!(count(metrics.proposal_process_time.values()), (6, 8));
        assert_eq!(metrics.prep_processor_request_queued.get(), 6);
        assert_eq!(metrics.sync_processor_request_queued.get(), 6);
        assert_eq!(count(metrics.sync_processor_queue_size.values()), (2, 4));
        assert_eq!(count(metrics.fsynctime.values()), (2, 9));
        assert_eq!(count(metrics.sync_processor_batch_size.values()), (2, 6));
        // The flushes are not included, and no fraction of a millisecond is lost.
        assert_eq!(count(metrics.sync_process_time.values()), (6, 4));
        assert_eq!(metrics.sync_process_time.values().max, 2);
        // Four records were with the log thread for 10 ms, 8 of them in the flush; two for 10 ms, 1 of them in the flush.
        let queue = metrics.sync_processor_queue_time_ms.values();
        assert_eq!(count(queue), (6, 4 * 2 + 2 * 9));
        let all = metrics.sync_processor_queue_and_flush_time_ms.values();
        assert_eq!(count(all), (6, 60));
        assert_eq!(count(metrics.sync_processor_queue_flush_time_ms.values()), (2, 9));
        assert_eq!(count(metrics.proposal_ack_creation_latency.values()), (6, 4 * 10 + 2 * 15));
        pipeline.handed_over(batch(7, 1, 0), None);
        assert_eq!(metrics.sync_processor_queue_size.values().sum, 4, "nothing waits any more");
        assert_eq!(metrics.sync_processor_request_queued.get(), 7);
        assert_eq!(metrics.prep_processor_request_queued.get(), 6, "a learner prepares nothing");
    }

    #[test]
    fn last_record_of_a_full_batch_includes_the_flush() {
        let metrics = Arc::new(Registry::default());
        let mut pipeline = Pipeline::new(metrics.clone());
        pipeline.flushed(&FlushReport { full: true, ..report(4, 4, 4_000, 50) }, 60_000, 0);
        let values = metrics.sync_process_time.values();
        assert_eq!((values.count, values.sum, values.min, values.max), (4, 54, 1, 51));
    }

    #[test]
    fn flush_without_fsync_is_not_counted_as_fsync() {
        let metrics = Arc::new(Registry::default());
        let mut pipeline = Pipeline::new(metrics.clone());
        pipeline.flushed(&FlushReport { sync_took: None, ..report(4, 4, 0, 0) }, 0, 0);
        assert_eq!(metrics.fsynctime.values().count, 0);
        assert_eq!(metrics.sync_processor_queue_flush_time_ms.values().count, 1);
    }

    // rows: M-04 M-06 M-14
    #[test]
    fn requests_of_the_server_itself_are_counted_as_prepared() {
        let metrics = Arc::new(Registry::default());
        let mut pipeline = Pipeline::new(metrics.clone());
        pipeline.prepared_own(0, 900);
        pipeline.prepared_own(3, 6_000);
        let time = metrics.prep_process_time.values();
        assert_eq!((time.count, time.sum), (3, 6));
        assert_eq!(metrics.prep_processor_queue_time_ms.values().count, 3);
        assert_eq!(metrics.prep_processor_queue_size.values().max, 3);
    }
}
