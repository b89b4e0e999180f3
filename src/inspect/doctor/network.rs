//! Which network policies limit who may send reviews. The API does not show whether the network plugin enforces them.

use serde_json::{Value, json};

use super::selector::{each, selects};

/// The name of the port of reviews.
const PORT_NAME: &str = "https";

/// Whether every pod of the cluster may connect to the port for reviews of pods with this template.
///
/// Policies add up: a policy that admits everybody opens the port despite all other policies. Policies do not apply to pods on the
/// host network.
pub(super) fn admits_everybody(policies: &[Value], template: &Value) -> bool {
    if template["spec"]["hostNetwork"] == true {
        return true;
    }
    let port = review_port(template);
    let mut selecting =
        policies.iter().filter(|it| is_for_ingress(it) && selects(&it["spec"]["podSelector"], template)).peekable();
    if selecting.peek().is_none() {
        return true;
    }
    let mut rules = selecting.flat_map(|it| each(&it["spec"]["ingress"]));
    rules.any(|rule| covers_reviews(&rule["ports"], port) && is_everybody(&rule["from"]))
}

/// The number of the port in the pod template.
fn review_port(template: &Value) -> Option<u64> {
    let mut ports = each(&template["spec"]["containers"]).flat_map(|container| each(&container["ports"]));
    ports.find(|port| port["name"] == PORT_NAME)?["containerPort"].as_u64()
}

/// Without `policyTypes`, a policy is one for ingress.
fn is_for_ingress(policy: &Value) -> bool {
    policy["spec"]["policyTypes"].as_array().is_none_or(|types| types.contains(&json!("Ingress")))
}

fn covers_reviews(ports: &Value, reviews: Option<u64>) -> bool {
    ports.as_array().is_none_or(|ports| ports.is_empty() || ports.iter().any(|port| includes(port, reviews)))
}

/// Whether a port of a rule includes the port for reviews.
fn includes(port: &Value, reviews: Option<u64>) -> bool {
    let first = &port["port"];
    let last = port["endPort"].as_u64();
    let is_tcp = port["protocol"].is_null() || port["protocol"] == "TCP";
    let number =
        first.as_u64().zip(reviews).is_some_and(|(first, reviews)| (first..=last.unwrap_or(first)).contains(&reviews));
    is_tcp && (first.is_null() || *first == PORT_NAME || number)
}

fn is_everybody(from: &Value) -> bool {
    from.as_array().is_none_or(|peers| peers.is_empty() || peers.iter().any(includes_every_pod))
}

fn includes_every_pod(peer: &Value) -> bool {
    let block = &peer["ipBlock"];
    let any_address = ["0.0.0.0/0", "::/0"].map(Value::from).contains(&block["cidr"]);
    let any_pod = peer["podSelector"].is_null() || selects_all(&peer["podSelector"]);
    any_address || (selects_all(&peer["namespaceSelector"]) && any_pod)
}

fn selects_all(selector: &Value) -> bool {
    selector.as_object().is_some_and(serde_json::Map::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(selector: &Value, ingress: &Value) -> Value {
        json!({"spec": {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": ingress}})
    }

    #[test]
    fn policies_admit_everybody_or_some() {
        let template = json!({
            "metadata": {"labels": {"app": "interlock"}},
            "spec": {"containers": [{"ports": [{"name": "admin", "containerPort": 8081}, {"name": "https", "containerPort": 8443}]}]},
        });
        let (interlock, other) =
            (json!({"matchLabels": {"app": "interlock"}}), json!({"matchLabels": {"app": "other"}}));
        let reviews = |from: Value| json!([{"ports": [{"port": "https", "protocol": "TCP"}], "from": from}]);
        let block = json!([{"ipBlock": {"cidr": "10.0.0.0/28"}}]);
        let agent = json!([{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}]);
        let some = policy(&interlock, &reviews(block.clone()));
        let is_open = |policies: &[Value]| admits_everybody(policies, &template);

        assert!(is_open(&[]));
        assert!(is_open(&[policy(&other, &reviews(block.clone()))]), "it selects other pods");
        assert!(!is_open(std::slice::from_ref(&some)));
        assert!(!is_open(&[policy(&interlock, &reviews(agent))]));
        assert!(!is_open(&[policy(&json!({}), &json!([]))]), "it closes every port");
        // Metrics for everybody do not open the port for reviews.
        let metrics = policy(&interlock, &json!([{"ports": [{"port": "admin"}], "from": [{"namespaceSelector": {}}]}]));
        assert!(!is_open(&[some.clone(), metrics]));
        for open in [
            json!([{}]),
            reviews(json!([])),
            reviews(json!([{"namespaceSelector": {}}])),
            reviews(json!([{"ipBlock": {"cidr": "0.0.0.0/0"}}])),
            json!([{"ports": [{"port": 8443}]}]),
            json!([{"ports": [{"port": 8000, "endPort": 9000}]}]),
        ] {
            assert!(is_open(&[some.clone(), policy(&interlock, &open)]), "{open}");
        }
        // The port of a preset.
        let mut elsewhere = template.clone();
        elsewhere["spec"]["containers"][0]["ports"][1]["containerPort"] = 10250.into();
        let numbered = policy(&interlock, &json!([{"ports": [{"port": 10250}]}]));
        assert!(admits_everybody(&[some.clone(), numbered.clone()], &elsewhere));
        assert!(!is_open(&[some.clone(), numbered]));
        elsewhere["spec"]["hostNetwork"] = true.into();
        assert!(
            admits_everybody(std::slice::from_ref(&some), &elsewhere),
            "policies have no effect on the host network"
        );
        let egress = json!({"spec": {"podSelector": {}, "policyTypes": ["Egress"]}});
        assert!(is_open(&[egress]), "it says nothing about ingress");
    }
}
