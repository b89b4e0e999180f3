# OPA answers a POST to / with data.system.main.
package system

main := {
	"apiVersion": "admission.k8s.io/v1",
	"kind": "AdmissionReview",
	"response": response,
}

response := {
	"uid": input.request.uid,
	"allowed": count(deny) == 0,
	"status": {"message": concat(" ", deny)},
}

deny contains "Helm manages the images of this Deployment." if {
	input.request.operation == "UPDATE"
	input.request.kind.kind == "Deployment"
	input.request.oldObject.metadata.labels["app.kubernetes.io/managed-by"] == "Helm"
	images(input.request.object) != images(input.request.oldObject)
}

deny contains "Helm manages the status of its records." if {
	input.request.operation == "UPDATE"
	input.request.kind.kind == "Secret"
	input.request.oldObject.type == "helm.sh/release.v1"
	status(input.request.object) != status(input.request.oldObject)
}

images(deployment) := [[c.name, c.image] | some c in deployment.spec.template.spec.containers]

status(record) := object.get(record, ["metadata", "labels", "status"], "")
