package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	// A namespace with this label set to `hang` keeps its new pods Pending, so that `--wait` waits.
	podsLabel = "controlplane/pods"
	podsHang  = "hang"
	// A pod that runs to completion ends with the exit code in this annotation, 0 without one.
	exitCodeAnnotation = "controlplane/exit-code"
	// How soon pods that hang are looked at again: the delay after a namespace's label is taken away.
	podsResync = time.Second
)

// runPods stands in for the kubelet: it reports pods as running and ready, or as completed if they are not to be
// restarted. No container runs. The pods of one namespace may be somebody else's. It returns when its context ends.
func runPods(end context.Context, server, ca, token, foreign string, log io.Writer) error {
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host:            server,
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: ca},
		UserAgent:       "controlplane-pods",
		QPS:             500,
		Burst:           1000,
	})
	if err != nil {
		return err
	}
	report := func(item any) {
		pod, ok := item.(*corev1.Pod)
		if !ok || pod.Namespace == foreign || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodPending {
			return
		}
		// Read live: a test that has set the label relies on it from that moment.
		namespace, err := client.CoreV1().Namespaces().Get(end, pod.Namespace, metav1.GetOptions{})
		if err != nil || namespace.Labels[podsLabel] == podsHang {
			return
		}
		done := pod.DeepCopy()
		complete(done)
		// A conflict or a pod that is gone: the next event or resync sees to it.
		if _, err := client.CoreV1().Pods(pod.Namespace).UpdateStatus(end, done, metav1.UpdateOptions{}); err != nil {
			fmt.Fprintf(log, "%s/%s: %v\n", pod.Namespace, pod.Name, err)
		}
	}
	factory := informers.NewSharedInformerFactory(client, podsResync)
	pods := factory.Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    report,
		UpdateFunc: func(_, item any) { report(item) },
	}); err != nil {
		return err
	}
	factory.Start(end.Done())
	return nil
}

// complete fills the status in as a kubelet would once the containers run or have run.
func complete(pod *corev1.Pod) {
	now := metav1.Now()
	status := &pod.Status
	status.StartTime = &now
	status.Phase = corev1.PodRunning
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	ready := corev1.ConditionTrue
	if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		ready = corev1.ConditionFalse
		status.Phase = corev1.PodSucceeded
		code, err := strconv.ParseInt(pod.Annotations[exitCodeAnnotation], 10, 32)
		if err == nil && code != 0 {
			status.Phase = corev1.PodFailed
		}
		state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: int32(code), StartedAt: now, FinishedAt: now,
		}}
	}
	status.Conditions = nil
	for kind, value := range map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodScheduled:    corev1.ConditionTrue,
		corev1.PodInitialized:  corev1.ConditionTrue,
		corev1.ContainersReady: ready,
		corev1.PodReady:        ready,
	} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: value, LastTransitionTime: now})
	}
	status.ContainerStatuses = nil
	started := ready == corev1.ConditionTrue
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, State: state, Ready: started, Started: &started,
		})
	}
}

// podsLog opens the file for what the loop could not do.
func (p *plane) podsLog() (*os.File, error) { return os.Create(p.path("pods.log")) }
