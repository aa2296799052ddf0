//! The provider of metrics, and its port.

use super::SettingPlace;
use super::checker::{Checker, Setting};
use super::problem::Warning;
use super::property_reader::Reader;
use super::secrets::shown;
use super::system_properties::{SystemProperties, as_written};
use super::tls::TlsSettings;
use super::tls_settings::{self, SslPrefix};

/// `metricsProvider.className`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Provider {
    /// `mntr` shows all metrics.
    #[default]
    Default,
    /// `mntr` shows version and state alone.
    Null,
    /// `mntr` shows what Prometheus reads at a port of its own.
    Prometheus,
}

/// `metricsProvider.*`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricsSettings {
    pub provider: Provider,
    /// The port where Prometheus reads metrics; `None`: the provider is another one.
    pub prometheus: Option<Prometheus>,
    /// `oxkeeper.metrics.jvmStandIns`: whether figures of the process stand in for those of a JVM.
    pub jvm_stand_ins: bool,
}

/// Adds what is set by a property.
pub(super) fn with_stand_ins(from_file: MetricsSettings, from: &mut Reader<'_>) -> MetricsSettings {
    const KEY: &str = "oxkeeper.metrics.jvmStandIns";
    let place = from.system.get(KEY).map(|property| property.place.clone());
    let jvm_stand_ins = from.flag(KEY, false);
    let is_used = from_file.prometheus.as_ref().is_some_and(|port| port.exports_process);
    if let Some(place) = place.filter(|_| jvm_stand_ins && !is_used) {
        let key = as_written(KEY, &place);
        let text = format!(
            "{key}=true: no effect without the provider of Prometheus with metricsProvider.exportJvmInfo=true; set \
             metricsProvider.className, or remove it"
        );
        from.warnings.push(Warning::new(place, text));
    }
    MetricsSettings { jvm_stand_ins, ..from_file }
}

/// The ports where Prometheus reads metrics; there is one at least.
#[derive(Clone, Debug, PartialEq)]
pub struct Prometheus {
    /// `metricsProvider.httpHost`: host name or address to bind; `None` is every address of the machine.
    pub host: Option<String>,
    /// `metricsProvider.httpPort`: 0 lets the system choose one; `None`: `httpsPort` alone is set.
    pub port: Option<u16>,
    pub https: Option<MetricsHttps>,
    /// `metricsProvider.exportJvmInfo`: whether Prometheus gets the figures of the process.
    pub exports_process: bool,
}

impl Prometheus {
    /// Whether one port speaks both: as in ZooKeeper 3.10, where both settings name it.
    pub fn is_shared(&self) -> bool {
        let https = self.https.as_ref().map(|https| https.port);
        https.is_some_and(|https| https != 0 && self.port == Some(https))
    }
}

/// A port with TLS, as ZooKeeper 3.10 has it.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricsHttps {
    /// `metricsProvider.httpsPort`: 0 lets the system choose one.
    pub port: u16,
    /// `metricsProvider.ssl.*`.
    pub settings: TlsSettings,
}

const PROVIDERS: &str = "org.apache.zookeeper.metrics";
const OWN: [&str; 4] = [
    "metricsProvider.httpHost",
    "metricsProvider.httpPort",
    "metricsProvider.httpsPort",
    "metricsProvider.exportJvmInfo",
];
const SSL: &str = "metricsProvider.ssl.";

/// Source: `MetricsProviderBootstrap` and `PrometheusMetricsProvider.configure`, ZooKeeper 3.9.5.
pub(super) fn take(checker: &mut Checker) -> MetricsSettings {
    let provider = take_class(checker);
    if provider != Provider::Prometheus {
        let set = checker.take_all(|key| OWN.contains(&key) || is_of_tls(key));
        let text = "metricsProvider.className names another provider";
        without_effect(checker, set, text);
        return MetricsSettings { provider, ..MetricsSettings::default() };
    }
    let host = checker.take("metricsProvider.httpHost").map(|host| host.value);
    let port = checker.number("metricsProvider.httpPort", 0..=65_535).map(|(n, _)| n as u16);
    let https = take_https(checker);
    let exports = checker.take("metricsProvider.exportJvmInfo");
    let prometheus = Prometheus {
        host: host.filter(|host| host != "0.0.0.0"),
        port: port.or_else(|| https.is_none().then_some(7000)),
        https,
        exports_process: exports.is_none_or(|exports| exports.value.eq_ignore_ascii_case("true")),
    };
    MetricsSettings { provider, prometheus: Some(prometheus), jvm_stand_ins: false }
}

fn is_of_tls(key: &str) -> bool {
    let known = ["keyStore.", "trustStore.", "enabledProtocols", "ciphersuites", "need.", "want."];
    key.strip_prefix(SSL).is_some_and(|name| known.iter().any(|start| name.starts_with(start)))
}

fn without_effect(checker: &mut Checker, set: Vec<(String, Setting)>, why: &str) {
    for (key, Setting { value, place, .. }) in set {
        checker.warn(&place, format!("{}: no effect; {why}: remove it", shown(&key, &value)));
    }
}

/// `None` without the port, and if a setting was wrong.
///
/// Source: ZooKeeper's guide to 3.10, "Metrics Providers".
fn take_https(checker: &mut Checker) -> Option<MetricsHttps> {
    let is_set = checker.get("metricsProvider.httpsPort").is_some();
    let port = checker.number("metricsProvider.httpsPort", 0..=65_535);
    let set = checker.take_all(is_of_tls);
    if !is_set {
        without_effect(checker, set, "metricsProvider.httpsPort is not set");
        return None;
    }
    let mut system = SystemProperties::default();
    for (key, Setting { value, place, .. }) in set {
        system.set(&format!("zookeeper.{key}"), &value, place);
    }
    let place =
        port.as_ref().map_or(checker.whole.clone(), |(_, place): &(_, SettingPlace)| place.clone());
    let settings = tls_settings::take(checker, &mut system, SslPrefix::Metrics, &place);
    let left = system.all().into_iter().map(|(key, property)| {
        let key = key.trim_start_matches("zookeeper.").to_owned();
        (key, Setting { raw: property.value.clone(), value: property.value, place: property.place })
    });
    without_effect(checker, left.collect(), "no such setting is known");
    Some(MetricsHttps { port: port?.0 as u16, settings: settings? })
}

const CLASSES: [&str; 3] = [
    ".prometheus.PrometheusMetricsProvider",
    ".impl.DefaultMetricsProvider",
    ".impl.NullMetricsProvider",
];

/// The known class whose name, without its package, in any case and without its ending, equals this one's.
fn nearest_class(value: &str) -> Option<&'static str> {
    let simple = |class: &str| {
        let name = class.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
        name.replace("provider", "").replace("metrics", "").replace("metric", "")
    };
    let meant = simple(value);
    CLASSES.into_iter().find(|class| strsim::damerau_levenshtein(&meant, &simple(class)) <= 2)
}

fn take_class(checker: &mut Checker) -> Provider {
    let Some(Setting { value, place, .. }) = checker.take("metricsProvider.className") else {
        return Provider::Default;
    };
    match value.strip_prefix(PROVIDERS) {
        Some(".impl.DefaultMetricsProvider") => return Provider::Default,
        Some(".impl.NullMetricsProvider") => return Provider::Null,
        Some(".prometheus.PrometheusMetricsProvider") => return Provider::Prometheus,
        _ => {}
    }
    let hint = nearest_class(&value)
        .map_or_else(|| "remove it".to_owned(), |class| format!("is it {PROVIDERS}{class}?"));
    let text = format!("metricsProvider.className={value} is not a known metrics provider; {hint}");
    checker.problem(&place, text);
    Provider::Default
}
