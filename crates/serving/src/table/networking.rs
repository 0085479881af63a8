//! How pods are reached: services and their endpoints, ingresses, network policies.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::json::Json;

use super::{
    AGE, Column, NAME, Row,
    fields::{filled_or, integer, is_set, items, labels, selector_or_none, shortened, text, text_or, texts},
};

pub(super) fn columns(group: &str, plural: &str) -> Option<&'static [Column]> {
    Some(match (group, plural) {
        ("", "services") => SERVICE,
        ("", "endpoints") => ENDPOINTS,
        ("discovery.k8s.io", "endpointslices") => ENDPOINT_SLICE,
        ("networking.k8s.io", "ingresses") => INGRESS,
        ("networking.k8s.io", "ingressclasses") => INGRESS_CLASS,
        ("networking.k8s.io", "networkpolicies") => NETWORK_POLICY,
        ("networking.k8s.io", "servicecidrs") => SERVICE_CIDR,
        ("networking.k8s.io", "ipaddresses") => IP_ADDRESS,
        _ => return None,
    })
}

/// How many entries of a long list are shown.
const SHOWN: usize = 3;

static SERVICE: &[Column] = &[
    NAME,
    Column::new("Type", "How the service is exposed.", |service, _| service_type(service).into()),
    Column::new("Cluster-IP", "The address inside the cluster.", |service, _| {
        let address = filled_or(service, "/spec/clusterIPs/0", text(service, "/spec/clusterIP"));
        if address.is_empty() { "<none>".into() } else { address.into() }
    }),
    Column::new("External-IP", "The addresses outside the cluster.", external_ip),
    Column::new("Port(s)", "The ports of the service, with those on each node.", |service, _| {
        let ports: Vec<String> = items(service, "/spec/ports").iter().map(service_port).collect();
        if ports.is_empty() { "<none>".into() } else { ports.join(",").into() }
    }),
    AGE,
    Column::new("Selector", "The labels of the pods behind the service.", |service, _| {
        labels(service, "/spec/selector").into()
    })
    .wide(),
];

fn service_type<'v>(service: &'v Json<'_>) -> &'v str {
    filled_or(service, "/spec/type", "ClusterIP")
}

fn service_port(port: &Json<'_>) -> String {
    let (number, protocol) = (integer(port, "/port"), filled_or(port, "/protocol", "TCP"));
    match integer(port, "/nodePort") {
        ..=0 => format!("{number}/{protocol}"),
        node_port => format!("{number}:{node_port}/{protocol}"),
    }
}

fn external_ip(service: &Json<'_>, _: &Row) -> Value {
    let external = texts(service, "/spec/externalIPs");
    match service_type(service) {
        "ClusterIP" | "NodePort" if external.is_empty() => "<none>".into(),
        "ClusterIP" | "NodePort" => external.into(),
        "LoadBalancer" => {
            let mut addresses = load_balancer_addresses(service);
            match (addresses.is_empty(), external.is_empty()) {
                (true, true) => addresses.push_str("<pending>"),
                (true, false) => addresses = external,
                (false, true) => {}
                (false, false) => addresses = format!("{addresses},{external}"),
            }
            addresses.into()
        }
        "ExternalName" => text(service, "/spec/externalName").into(),
        _ => "<unknown>".into(),
    }
}

/// The addresses of a load balancer, in order, each once.
fn load_balancer_addresses(object: &Json<'_>) -> String {
    let ingress = items(object, "/status/loadBalancer/ingress").iter();
    let addresses: BTreeSet<&str> = ingress
        .map(|point| filled_or(point, "/ip", text(point, "/hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

static ENDPOINTS: &[Column] = &[
    NAME,
    Column::new("Endpoints", "The addresses and ports behind the service.", |endpoints, _| {
        let subsets = items(endpoints, "/subsets");
        if subsets.is_empty() {
            return "<none>".into();
        }
        let all: Vec<String> = subsets.iter().flat_map(subset_endpoints).collect();
        shortened(&all.iter().map(String::as_str).collect::<Vec<_>>(), SHOWN, ",").into()
    }),
    AGE,
];

/// Each port on each address; the addresses alone where there are no ports.
fn subset_endpoints(subset: &Json<'_>) -> Vec<String> {
    let addresses = || items(subset, "/addresses").iter().map(|address| text(address, "/ip"));
    let at_port = |port: &Json<'_>| {
        let number = integer(port, "/port");
        addresses().map(move |ip| match ip.contains(':') {
            true => format!("[{ip}]:{number}"),
            false => format!("{ip}:{number}"),
        })
    };
    match items(subset, "/ports") {
        [] => addresses().map(str::to_owned).collect(),
        ports => ports.iter().flat_map(at_port).collect(),
    }
}

static ENDPOINT_SLICE: &[Column] = &[
    NAME,
    Column::new("AddressType", "What kind of addresses the slice holds.", |slice, _| {
        text(slice, "/addressType").into()
    }),
    Column::new("Ports", "The ports of each endpoint.", |slice, _| {
        let port = |port: &Json<'_>| match is_set(port, "/port") {
            true => integer(port, "/port").to_string(),
            false => text(port, "/name").to_owned(),
        };
        let ports: Vec<String> = items(slice, "/ports").iter().map(port).collect();
        some_or_unset(&ports.iter().map(String::as_str).collect::<Vec<_>>())
    }),
    Column::new("Endpoints", "The addresses behind the service.", |slice, _| {
        let of_endpoint = |endpoint| items(endpoint, "/addresses").iter().map(|address| text(address, ""));
        some_or_unset(&items(slice, "/endpoints").iter().flat_map(of_endpoint).collect::<Vec<_>>())
    }),
    AGE,
];

fn some_or_unset(entries: &[&str]) -> Value {
    let shown = shortened(entries, SHOWN, ",");
    if shown.is_empty() { "<unset>".into() } else { shown.into() }
}

static INGRESS: &[Column] = &[
    NAME,
    Column::new("Class", "The ingress class that serves it.", |ingress, _| {
        text_or(ingress, "/spec/ingressClassName", "<none>").into()
    }),
    Column::new("Hosts", "The hosts that the rules are for.", |ingress, _| {
        hosts(items(ingress, "/spec/rules")).into()
    }),
    Column::new("Address", "Where the load balancer is.", |ingress, _| {
        load_balancer_addresses(ingress).into()
    }),
    Column::new("Ports", "The open ports.", |ingress, _| match items(ingress, "/spec/tls") {
        [] => "80".into(),
        _ => "80, 443".into(),
    }),
    AGE,
];

/// The first hosts of some rules. A rule for all hosts takes no place in the list, but counts.
fn hosts(rules: &[Json<'_>]) -> String {
    let mut named = rules.iter().enumerate().filter(|(_, rule)| !text(rule, "/host").is_empty());
    let shown: Vec<(usize, &Json<'_>)> = named.by_ref().take(SHOWN).collect();
    let names = shown.iter().map(|(_, rule)| text(rule, "/host")).collect::<Vec<_>>().join(",");
    match shown.last() {
        None => "*".to_owned(),
        Some((last, _)) if shown.len() == SHOWN && last + 1 < rules.len() => {
            format!("{names} + {} more...", rules.len() - SHOWN)
        }
        Some(_) => names,
    }
}

static INGRESS_CLASS: &[Column] = &[
    Column::new("Name", "The name of the object.", |class, _| {
        let is_default = "/metadata/annotations/ingressclass.kubernetes.io~1is-default-class";
        let mark = if text(class, is_default) == "true" { " (default)" } else { "" };
        format!("{}{mark}", text(class, "/metadata/name")).into()
    })
    .named(),
    Column::new("Controller", "What serves the ingresses of the class.", |class, _| {
        text(class, "/spec/controller").into()
    }),
    Column::new("Parameters", "The object with further settings.", |class, _| {
        if !is_set(class, "/spec/parameters") {
            return "<none>".into();
        }
        let of_group = match text_or(class, "/spec/parameters/apiGroup", "") {
            "" => String::new(),
            group => format!(".{group}"),
        };
        let (kind, name) = (text(class, "/spec/parameters/kind"), text(class, "/spec/parameters/name"));
        format!("{kind}{of_group}/{name}").into()
    }),
    AGE,
];

static NETWORK_POLICY: &[Column] = &[
    NAME,
    Column::new("Pod-Selector", "Which pods the policy is for.", |policy, _| {
        selector_or_none(policy, "/spec/podSelector").into()
    }),
    AGE,
];

static SERVICE_CIDR: &[Column] = &[
    NAME,
    Column::new("CIDRs", "The ranges that addresses of services come from.", |range, _| {
        texts(range, "/spec/cidrs").into()
    }),
    AGE,
];

static IP_ADDRESS: &[Column] = &[
    NAME,
    Column::new("ParentRef", "The object that has the address.", |address, _| {
        if !is_set(address, "/spec/parentRef") {
            return "<none>".into();
        }
        let field = |name| text(address, name);
        let resource = match field("/spec/parentRef/group") {
            "" => field("/spec/parentRef/resource").to_owned(),
            group => format!("{}.{group}", field("/spec/parentRef/resource")),
        };
        let parts = [&resource.to_lowercase(), field("/spec/parentRef/namespace")];
        let path: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{}/{}", path.join("/"), field("/spec/parentRef/name")).into()
    }),
];
