//! Tests of `logback.xml`.

use super::log_output::{Appender, Dates, LogFile, NamePart, Period, Rolling, Stream};
use super::logback::{Logback, Outside, parse};
use std::path::Path;
use tracing::level_filters::LevelFilter;

fn with_files(body: &str, files: &[(&str, &str)]) -> Logback {
    let file = |wanted: &str| {
        let found = files.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "no such file".to_owned())
    };
    let outside = Outside { variable: &|_| None, file: &file };
    parse(&format!("<configuration>{body}</configuration>"), &outside).unwrap()
}

fn parsed(body: &str) -> Logback {
    with_files(body, &[])
}

const CONSOLE: &str = "<appender name='CONSOLE' class='ch.qos.logback.core.ConsoleAppender'><encoder>\
    <pattern>%d{ISO8601} [myid:%X{myid}] - %-5p [%t:%C{1}@%L] - %m%n</pattern></encoder>\
    <filter class='ch.qos.logback.classic.filter.ThresholdFilter'><level>WARN</level></filter></appender>";

// rows: C-269
#[test]
fn file_of_zookeeper_is_read_without_a_remark() {
    let found = parsed(&format!(
        "<property name='zookeeper.log.dir' value='/l'/><property name='zookeeper.log.file' value='z.log'/>{CONSOLE}
         <appender name='ROLLINGFILE' class='ch.qos.logback.core.rolling.RollingFileAppender'>
           <File>${{zookeeper.log.dir}}/${{zookeeper.log.file}}</File>
           <rollingPolicy class='ch.qos.logback.core.rolling.FixedWindowRollingPolicy'><maxIndex>${{index:-20}}</maxIndex>
             <FileNamePattern>${{zookeeper.log.dir}}/${{zookeeper.log.file}}.%i</FileNamePattern></rollingPolicy>
           <triggeringPolicy class='ch.qos.logback.core.rolling.SizeBasedTriggeringPolicy'><MaxFileSize>256MB</MaxFileSize></triggeringPolicy>
         </appender>
         <logger name='org.apache.zookeeper.server.persistence' level='debug'/>
         <root level='INFO'><appender-ref ref='CONSOLE'/><appender-ref ref='ROLLINGFILE'/></root>"
    ));
    let path = Path::new("/l/z.log");
    let file = LogFile {
        path: path.to_owned(),
        threshold: LevelFilter::TRACE,
        rolling: Some(Rolling::beside(path, 256 << 20, 20)),
    };
    let console = Appender::Console { stream: Stream::Out, threshold: LevelFilter::WARN };
    assert_eq!(found.appenders, [console, Appender::File(file)]);
    assert_eq!(found.root, Some(LevelFilter::INFO));
    assert_eq!(found.levels, [("oxkeeper::store".to_owned(), LevelFilter::DEBUG)]);
    assert_eq!(found.left_out, Vec::<String>::new());
}

// rows: C-269
#[test]
fn parts_without_effect_are_named_once() {
    let found = parsed(
        "<include file='x'/><include url='u'/><property file='y'/><statusListener class='z'/>
         <appender name='UNUSED' class='no.Such'/>
         <appender name='SYSLOG' class='ch.qos.logback.classic.net.SyslogAppender'/>
         <appender name='A' class='ch.qos.logback.core.FileAppender'><file>a</file><append>false</append>
           <encoder><charset>UTF-16</charset><pattern>%d{ISO8601} %p %c{2}: %m%n</pattern></encoder>
           <encoder class='net.logstash.logback.encoder.LogstashEncoder'/><filter class='x.LevelFilter'/></appender>
         <appender name='B' class='ch.qos.logback.classic.AsyncAppender'><appender-ref ref='A'/><queueSize>5</queueSize><filter class='x'/></appender>
         <logger name='org.eclipse.jetty' level='WARN'/><logger name='org.apache.zookeeper.audit' additivity='false'/>
         <logger name='org.apache.zookeeper.audit.Slf4jAuditLogger' level='odd'><appender-ref ref='A'/></logger>
         <logger name='org.apache.zookeeper' level='loud'><appender-ref ref='A'/></logger>
         <root level='INFO'><appender-ref ref='B'/><appender-ref ref='SYSLOG'/><appender-ref ref='A'/><appender-ref ref='C'/></root>",
    );
    assert_eq!(found.appenders.len(), 1);
    let Appender::File(file) = &found.appenders[0] else { panic!("{found:?}") };
    assert_eq!((file.path.as_path(), &file.rolling), (Path::new("a"), &None));
    let left_out = found.left_out.join("; ");
    assert_eq!(
        left_out,
        "<include> of x: no such file; <include> of a URL; properties of y: no such file; <statuslistener>; <filter> of B; append=false of A; \
         charset=UTF-16 of A; encoder LogstashEncoder of A, see --log-format; filter LevelFilter of A; appender SYSLOG of ch.qos.logback.classic.net.SyslogAppender; appender C, which is not there; \
         logger org.eclipse.jetty, which has no counterpart; \
         appenders of logger org.apache.zookeeper: its lines go where the root's go; \
         level \"loud\" of logger org.apache.zookeeper; additivity=false of logger org.apache.zookeeper.audit: set its level to OFF; \
         level \"odd\" of the audit log's logger; additivity of the audit log's logger: its lines go into its file alone"
    );
}

// rows: C-269 U-30
#[test]
fn audit_log_has_the_file_of_its_logger() {
    let found = parsed(
        "<appender name='RFAAUDIT' class='ch.qos.logback.core.rolling.RollingFileAppender'><File>/l/audit.log</File>
           <encoder><pattern>%d{ISO8601} %p %c{2}: %m%n</pattern></encoder>
           <rollingPolicy class='x.FixedWindowRollingPolicy'><maxIndex>3</maxIndex><FileNamePattern>/l/audit-%i.log.gz</FileNamePattern></rollingPolicy>
           <triggeringPolicy class='x.SizeBasedTriggeringPolicy'/></appender>
         <logger name='org.apache.zookeeper.audit.Slf4jAuditLogger' additivity='false' level='INFO, RFAAUDIT'><appender-ref ref='RFAAUDIT'/></logger>",
    );
    let rolling = Rolling {
        size_bytes: 10 << 20,
        kept: 3,
        first: 1,
        older: ("/l/audit-".to_owned(), ".log".to_owned()),
        dates: None,
    };
    let file = LogFile {
        path: "/l/audit.log".into(),
        threshold: LevelFilter::INFO,
        rolling: Some(rolling),
    };
    assert_eq!(found.audit, Some(file));
    let quiet = "<logger name='org.apache.zookeeper.audit.Slf4jAuditLogger' level='OFF'/>";
    assert_eq!(
        parsed(quiet).levels,
        [("oxkeeper::server::audit_log".to_owned(), LevelFilter::OFF)]
    );
    assert_eq!(found.left_out, ["packing of RFAAUDIT's older files"]);
}

fn rolling_of(policy: &str) -> (LogFile, Vec<String>) {
    let found = parsed(&format!(
        "<appender name='F' class='RollingFileAppender'>{policy}</appender><root level='DEBUG'><appender-ref ref='F'/></root>"
    ));
    let Appender::File(file) = &found.appenders[0] else { panic!("{found:?}") };
    (file.clone(), found.left_out)
}

// rows: C-269
#[test]
fn files_by_date_have_the_date_of_the_pattern() {
    let (file, left_out) = rolling_of(
        "<file>/l/zk.log</file><rollingPolicy class='SizeAndTimeBasedRollingPolicy'>
         <fileNamePattern>/l/zk.%d{yyyy-MM-dd}.%i.log.gz</fileNamePattern><maxFileSize>1MB</maxFileSize>
         <maxHistory>60</maxHistory><totalSizeCap>8MB</totalSizeCap></rollingPolicy>",
    );
    let text = |text: &str| NamePart::Text(text.to_owned());
    let name = vec![text("/l/zk."), NamePart::Date, text("."), NamePart::Number, text(".log")];
    let dates = Dates {
        name,
        format: "%Y-%m-%d".to_owned(),
        period: Period::Day,
        periods_kept: 60,
        cap_bytes: Some(8 << 20),
    };
    let rolling = file.rolling.unwrap();
    assert_eq!((rolling.size_bytes, rolling.dates), (1 << 20, Some(dates)));
    assert_eq!(left_out, ["packing of F's older files"]);
    let (file, left_out) = rolling_of(
        "<rollingPolicy class='TimeBasedRollingPolicy'><fileNamePattern>/l/zk-%d{yyyyMMddHH}.log</fileNamePattern></rollingPolicy>",
    );
    let rolling = file.rolling.unwrap();
    assert_eq!(file.path, Path::new("/l/zk.log"));
    assert_eq!(rolling.size_bytes, u64::MAX);
    assert_eq!(rolling.dates.map(|dates| dates.period), Some(Period::Hour));
    assert_eq!(left_out, ["date in the name of F's newest file, which is /l/zk.log"]);
}

// rows: C-269
#[test]
fn files_by_a_date_that_does_not_sort_are_renamed_by_size() {
    let (file, left_out) = rolling_of(
        "<rollingPolicy class='SizeAndTimeBasedRollingPolicy'><fileNamePattern>/l/%d{dd.MM.yyyy}/zk.%i.log.gz</fileNamePattern>
         <maxFileSize>1MB</maxFileSize><maxHistory>60</maxHistory><totalSizeCap>8MB</totalSizeCap></rollingPolicy>",
    );
    assert_eq!(file.path, Path::new("/l/zk.log"));
    assert_eq!(file.rolling, Some(Rolling::beside(&file.path, 1 << 20, 8)));
    assert_eq!(left_out, ["dates of F: its file is renamed by size"]);
}

// rows: C-269
#[test]
fn pattern_of_the_first_appender_counts() {
    let appender = |name: &str, pattern: &str| {
        format!(
            "<appender name='{name}' class='ConsoleAppender'><encoder><pattern>{pattern}</pattern></encoder></appender>"
        )
    };
    let root = "<root><appender-ref ref='A'/><appender-ref ref='B'/></root>";
    let of = |first: &str, second: &str| {
        parsed(&format!(
            "<property name='p' value='%m%n'/>{}{}{root}",
            appender("A", first),
            appender("B", second)
        ))
    };
    let own = of("%d %p ${p}", "%d %p %m%n");
    assert_eq!(own.pattern.as_ref().map(Vec::len), Some(6), "{own:?}");
    assert_eq!(own.left_out, Vec::<String>::new());
    let strange = of("%marker %m%n", "%p %m%n");
    assert_eq!(strange.pattern.map(|parts| parts.len()), Some(4));
    assert_eq!(strange.left_out, ["pattern of A: lines have the form of --log-format"]);
    let zookeepers = of("%d{ISO8601} [myid:%X{myid}] - %-5p [%t:%C{1}@%L] - %m%n", "%p %m%n");
    assert_eq!(zookeepers.pattern, None);
    assert_eq!(zookeepers.left_out, ["pattern of B: lines have that of the appender before it"]);
}

// rows: C-269
#[test]
fn included_files_and_properties_of_other_files_count() {
    let files = [
        (
            "more.xml",
            "<included><include file='deep.xml'/><root level='${level}'><appender-ref ref='A'/></root></included>",
        ),
        ("deep.xml", "<included><appender name='A' class='ConsoleAppender'/></included>"),
        ("p.properties", "level=WARN\n"),
        ("wrong.xml", "<configuration/>"),
        ("loop.xml", "<included><include file='loop.xml'/></included>"),
    ];
    let found = with_files(
        "<property file='p.properties'/><include resource='more.xml'/><include file='no.xml' optional='true'/>
         <include file='no.xml'/><include file='wrong.xml'/><include file='loop.xml'/>",
        &files,
    );
    assert_eq!(found.root, Some(LevelFilter::WARN));
    assert_eq!(found.appenders.len(), 1);
    assert_eq!(
        found.left_out,
        [
            "<include> of no.xml: no such file",
            "<include> of wrong.xml: <configuration> stands where <included> has to",
            "<include> after 32 others"
        ]
    );
}

proptest::proptest! {
    #[test]
    fn no_text_causes_a_panic(text in "(<[a-z/]{0,9}( [a-z]{1,4}='[^']{0,9}')?>|[$%{}a-z:&;-]{0,9}){0,9}") {
        let none = Outside { variable: &|_| None, file: &|_| Err(String::new()) };
        let _may_fail = parse(&format!("<configuration>{text}</configuration>"), &none);
    }
}
