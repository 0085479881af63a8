use super::*;

pub(super) fn cases() -> Vec<Case> {
    vec![services(), endpoints(), endpoint_slices(), ingresses(), ingress_classes()]
        .into_iter()
        .chain(others())
        .collect()
}

fn services() -> Case {
    let service = |spec: Value, ingress: Value| {
        object("a", json!({ "spec": spec, "status": { "loadBalancer": { "ingress": ingress } } }))
    };
    let row = |r#type: &str, cluster: &str, external: &str, ports: &str| {
        json!(["a", r#type, cluster, external, ports, "5m", "<none>"])
    };
    let plain = object(
        "a",
        json!({ "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.0.0.1",
            "clusterIPs": ["10.0.0.1", "fd00::1"],
            "ports": [{ "port": 80, "protocol": "TCP" }, { "port": 53, "protocol": "UDP" }],
            "selector": { "b": "2", "a": "1" },
        } }),
    );
    let balanced = json!([{ "ip": "2.2.2.2" }, { "hostname": "lb.example.com" }, { "ip": "1.1.1.1" }, { "ip": "2.2.2.2" }]);
    let all = "1.1.1.1,2.2.2.2,lb.example.com";
    Case {
        group: "",
        plural: "services",
        header: "Name/name, Type, Cluster-IP, External-IP, Port(s), Age, Selector+",
        rows: vec![
            (plain, json!(["a", "ClusterIP", "10.0.0.1", "<none>", "80/TCP,53/UDP", "5m", "a=1,b=2"])),
            (
                service(json!({ "externalIPs": ["9.9.9.9", "8.8.8.8"], "clusterIP": "None" }), json!([])),
                row("ClusterIP", "None", "9.9.9.9,8.8.8.8", "<none>"),
            ),
            (
                service(
                    json!({ "type": "NodePort", "ports": [{ "port": 80, "nodePort": 30080 }] }),
                    json!([]),
                ),
                row("NodePort", "<none>", "<none>", "80:30080/TCP"),
            ),
            (
                service(json!({ "type": "LoadBalancer" }), json!([])),
                row("LoadBalancer", "<none>", "<pending>", "<none>"),
            ),
            (
                service(json!({ "type": "LoadBalancer" }), balanced.clone()),
                row("LoadBalancer", "<none>", all, "<none>"),
            ),
            (
                service(json!({ "type": "LoadBalancer", "externalIPs": ["9.9.9.9"] }), balanced),
                row("LoadBalancer", "<none>", &format!("{all},9.9.9.9"), "<none>"),
            ),
            (
                service(json!({ "type": "LoadBalancer", "externalIPs": ["9.9.9.9"] }), json!([])),
                row("LoadBalancer", "<none>", "9.9.9.9", "<none>"),
            ),
            (
                service(json!({ "type": "ExternalName", "externalName": "example.com" }), json!([])),
                row("ExternalName", "<none>", "example.com", "<none>"),
            ),
            (service(json!({ "type": "Other" }), json!([])), row("Other", "<none>", "<unknown>", "<none>")),
            (json!({}), json!(["", "ClusterIP", "<none>", "<none>", "<none>", "<unknown>", "<none>"])),
        ],
    }
}

fn endpoints() -> Case {
    let addresses = |ips: &[&str]| -> Value { ips.iter().map(|ip| json!({ "ip": ip })).collect() };
    let endpoints = |subsets: Value| object("a", json!({ "subsets": subsets }));
    let two = || addresses(&["1.1.1.1", "fd00::1"]);
    let four = || addresses(&["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"]);
    let ports = json!([{ "port": 80 }, { "port": 443 }]);
    Case {
        group: "",
        plural: "endpoints",
        header: "Name/name, Endpoints, Age",
        rows: vec![
            (
                endpoints(json!([{ "addresses": two(), "ports": [{ "port": 80 }] }])),
                json!(["a", "1.1.1.1:80,[fd00::1]:80", "5m"]),
            ),
            (
                endpoints(json!([{ "addresses": two(), "ports": ports }])),
                json!(["a", "1.1.1.1:80,[fd00::1]:80,1.1.1.1:443 + 1 more...", "5m"]),
            ),
            (
                endpoints(json!([{ "addresses": four() }])),
                json!(["a", "1.1.1.1,2.2.2.2,3.3.3.3 + 1 more...", "5m"]),
            ),
            (endpoints(json!([{ "notReadyAddresses": two() }])), json!(["a", "", "5m"])),
            (json!({}), json!(["", "<none>", "<unknown>"])),
        ],
    }
}

fn endpoint_slices() -> Case {
    let slice = |ports: Value, endpoints: Value| {
        object("a", json!({ "addressType": "IPv4", "ports": ports, "endpoints": endpoints }))
    };
    let endpoint = |addresses: &[&str]| json!({ "addresses": addresses });
    let many_ports = json!([{ "port": 80 }, { "name": "x" }, { "port": 81 }, { "port": 82 }, { "port": 83 }]);
    Case {
        group: "discovery.k8s.io",
        plural: "endpointslices",
        header: "Name/name, AddressType, Ports, Endpoints, Age",
        rows: vec![
            (
                slice(
                    json!([{ "name": "http", "port": 80 }]),
                    json!([endpoint(&["1.1.1.1"]), endpoint(&["2.2.2.2"])]),
                ),
                json!(["a", "IPv4", "80", "1.1.1.1,2.2.2.2", "5m"]),
            ),
            (
                slice(many_ports, json!([endpoint(&["1", "2"]), endpoint(&["3", "4"])])),
                json!(["a", "IPv4", "80,x,81 + 2 more...", "1,2,3 + 1 more...", "5m"]),
            ),
            (slice(json!(null), json!([])), json!(["a", "IPv4", "<unset>", "<unset>", "5m"])),
            (json!({}), json!(["", "", "<unset>", "<unset>", "<unknown>"])),
        ],
    }
}

fn ingresses() -> Case {
    let rules = |hosts: &[&str]| -> Value { hosts.iter().map(|host| json!({ "host": host })).collect() };
    let ingress = |rules: Value| object("a", json!({ "spec": { "rules": rules } }));
    let row = |hosts: &str| json!(["a", "<none>", hosts, "", "80", "5m"]);
    let full = object(
        "a",
        json!({
            "spec": { "ingressClassName": "nginx", "rules": rules(&["x.io"]), "tls": [{}] },
            "status": { "loadBalancer": { "ingress": [{ "ip": "2.2.2.2" }, { "hostname": "a-very-long-name.example.com" }] } },
        }),
    );
    Case {
        group: "networking.k8s.io",
        plural: "ingresses",
        header: "Name/name, Class, Hosts, Address, Ports, Age",
        rows: vec![
            (full, json!(["a", "nginx", "x.io", "2.2.2.2,a-very-long-name.example.com", "80, 443", "5m"])),
            (ingress(rules(&["a", "b", "c"])), row("a,b,c")),
            (ingress(rules(&["a", "b", "c", "d", "e"])), row("a,b,c + 2 more...")),
            (ingress(rules(&["a", "b", "c", ""])), row("a,b,c + 1 more...")),
            (ingress(rules(&["a", "", "b"])), row("a,b")),
            (ingress(rules(&["", "a", "b", "c"])), row("a,b,c")),
            (ingress(rules(&["", ""])), row("*")),
            (json!({}), json!(["", "<none>", "*", "", "80", "<unknown>"])),
        ],
    }
}

fn ingress_classes() -> Case {
    let parameters = json!({ "apiGroup": "example.com", "kind": "Settings", "name": "s" });
    let default = json!({ "annotations": { "ingressclass.kubernetes.io/is-default-class": "true" } });
    let spec = json!({ "controller": "example.com/c", "parameters": parameters });
    Case {
        group: "networking.k8s.io",
        plural: "ingressclasses",
        header: "Name/name, Controller, Parameters, Age",
        rows: vec![
            (
                object("a", json!({ "metadata": default, "spec": spec })),
                json!(["a (default)", "example.com/c", "Settings.example.com/s", "5m"]),
            ),
            (
                object("a", json!({ "spec": { "parameters": { "kind": "ConfigMap", "name": "s" } } })),
                json!(["a", "", "ConfigMap/s", "5m"]),
            ),
            (json!({}), json!(["", "", "<none>", "<unknown>"])),
        ],
    }
}

fn others() -> Vec<Case> {
    let selector = json!({ "matchExpressions": [{ "key": "a", "operator": "NotIn", "values": ["x"] }] });
    let parent = |namespace: &str| json!({ "group": "", "resource": "Services", "namespace": namespace, "name": "web" });
    let of_group = json!({ "group": "gateway.io", "resource": "gateways", "name": "g" });
    let address = |parent: Value| object("10.0.0.1", json!({ "spec": { "parentRef": parent } }));
    vec![
        Case {
            group: "networking.k8s.io",
            plural: "networkpolicies",
            header: "Name/name, Pod-Selector, Age",
            rows: vec![
                (
                    object("a", json!({ "spec": { "podSelector": selector } })),
                    json!(["a", "a notin (x)", "5m"]),
                ),
                (object("a", json!({ "spec": { "podSelector": {} } })), json!(["a", "<none>", "5m"])),
                (json!({}), json!(["", "<none>", "<unknown>"])),
            ],
        },
        Case {
            group: "networking.k8s.io",
            plural: "servicecidrs",
            header: "Name/name, CIDRs, Age",
            rows: vec![(
                object("a", json!({ "spec": { "cidrs": ["10.0.0.0/16", "fd00::/64"] } })),
                json!(["a", "10.0.0.0/16,fd00::/64", "5m"]),
            )],
        },
        Case {
            group: "networking.k8s.io",
            plural: "ipaddresses",
            header: "Name/name, ParentRef",
            rows: vec![
                (address(parent("default")), json!(["10.0.0.1", "services/default/web"])),
                (address(parent("")), json!(["10.0.0.1", "services/web"])),
                (address(of_group), json!(["10.0.0.1", "gateways.gateway.io/g"])),
                (json!({}), json!(["", "<none>"])),
            ],
        },
    ]
}
