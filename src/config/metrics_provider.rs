//! The provider of metrics, and its port.

use super::checker::{Checker, Setting};
use super::secrets::shown;

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
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MetricsSettings {
    pub provider: Provider,
    /// The port where Prometheus reads metrics; `None`: the provider is another one.
    pub prometheus: Option<Prometheus>,
}

/// The port where Prometheus reads metrics.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Prometheus {
    /// `metricsProvider.httpHost`: host name or address to bind; `None` is every address of the machine.
    pub host: Option<String>,
    /// `metricsProvider.httpPort`: 0 lets the system choose one.
    pub port: u16,
    /// `metricsProvider.exportJvmInfo`: whether figures of the process are told.
    pub tells_process: bool,
}

const PROVIDERS: &str = "org.apache.zookeeper.metrics";
const OWN: [&str; 3] =
    ["metricsProvider.httpHost", "metricsProvider.httpPort", "metricsProvider.exportJvmInfo"];

/// Source: `MetricsProviderBootstrap` and `PrometheusMetricsProvider.configure`, ZooKeeper 3.9.5.
pub(super) fn take(checker: &mut Checker) -> MetricsSettings {
    let provider = take_class(checker);
    if provider != Provider::Prometheus {
        for key in OWN {
            if let Some(Setting { value, place, .. }) = checker.take(key) {
                let text = "metricsProvider.className names another provider";
                checker.warn(&place, format!("{}: no effect; {text}", shown(key, &value)));
            }
        }
        return MetricsSettings { provider, prometheus: None };
    }
    let host = checker.take("metricsProvider.httpHost").map(|host| host.value);
    let port = checker.number("metricsProvider.httpPort", 0..=65_535).map_or(7000, |(n, _)| n);
    let tells = checker.take("metricsProvider.exportJvmInfo");
    let prometheus = Prometheus {
        host: host.filter(|host| host != "0.0.0.0"),
        port: port as u16,
        tells_process: tells.is_none_or(|tells| tells.value.eq_ignore_ascii_case("true")),
    };
    MetricsSettings { provider, prometheus: Some(prometheus) }
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
    let text =
        format!("metricsProvider.className={value} is not a known metrics provider; remove it");
    checker.problem(&place, text);
    Provider::Default
}
