//! The settings of the replicas, as their Deployment states them.

use serde_json::Value;

/// The value of a flag or of its environment variable. It is empty if the value comes from another object.
pub(super) fn setting<'d>(deployment: &'d Value, variable: &str, flag: &str) -> Option<&'d str> {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array()?;
    containers.iter().find_map(|it| argument(it, flag).or_else(|| environment(it, variable)))
}

fn argument<'d>(container: &'d Value, flag: &str) -> Option<&'d str> {
    let mut arguments = container["args"].as_array()?.iter().filter_map(Value::as_str);
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix(flag) {
            Some("") => return arguments.next(),
            Some(rest) if rest.starts_with('=') => return Some(&rest[1..]),
            _ => {}
        }
    }
    None
}

fn environment<'d>(container: &'d Value, variable: &str) -> Option<&'d str> {
    let found = container["env"].as_array()?.iter().find(|it| it["name"] == variable)?;
    Some(found["value"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_setting_is_a_flag_or_a_variable() {
        let of = |container: Value| {
            let deployment = json!({"spec": {"template": {"spec": {"containers": [{"name": "sidecar"}, container]}}}});
            setting(&deployment, "INTERLOCK_CLIENT_NAME", "--client-name").map(str::to_owned)
        };
        let value = Some("a,b".to_owned());
        assert_eq!(of(json!({"env": [{"name": "INTERLOCK_CLIENT_NAME", "value": "a,b"}]})), value);
        assert_eq!(of(json!({"args": ["serve", "--client-name=a,b"]})), value);
        assert_eq!(of(json!({"args": ["serve", "--client-name", "a,b"]})), value);
        let elsewhere = json!([{"name": "INTERLOCK_CLIENT_NAME", "valueFrom": {"fieldRef": {}}}]);
        assert_eq!(of(json!({"env": elsewhere})), Some(String::new()));
        assert_eq!(of(json!({"args": ["serve", "--client-names=a"], "env": [{"name": "INTERLOCK"}]})), None);
    }
}
