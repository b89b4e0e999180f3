package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	// A namespace with this label set to `hang` keeps its new pods Pending, so that `--wait` waits.
	podsLabel = "controlplane/pods"
	podsHang  = "hang"
	// A pod that runs to completion ends with the exit code in this annotation, 0 without one.
	exitCodeAnnotation = "controlplane/exit-code"
	// How many pods are reported at a time: the API server of a busy machine answers slowly, and a rollout waits for each of its pods.
	podsReporters = 4
)

// reporter stands in for the kubelet: it reports pods as running and ready, or as completed if they are not to be
// restarted. No container runs.
type reporter struct {
	client kubernetes.Interface
	pods   listers.PodLister
	// Pods by namespace and name. The oldest Kubernetes that the tests run on has no typed queue.
	queue workqueue.RateLimitingInterface
	// A namespace whose pods are somebody else's.
	foreign string
	log     io.Writer
}

// runPods reports pods until its context ends. The pods of one namespace may be somebody else's.
func runPods(end context.Context, server, ca, token, foreign string, log io.Writer) error {
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host:            server,
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: ca},
		UserAgent:       "controlplane-pods",
		ContentConfig:   rest.ContentConfig{ContentType: k8sruntime.ContentTypeProtobuf},
		QPS:             500,
		Burst:           1000,
	})
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods, namespaces := factory.Core().V1().Pods(), factory.Core().V1().Namespaces()
	r := &reporter{
		client:  client,
		pods:    pods.Lister(),
		queue:   workqueue.NewRateLimitingQueue(workqueue.DefaultControllerRateLimiter()),
		foreign: foreign,
		log:     log,
	}
	if _, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    r.enqueue,
		UpdateFunc: func(_, pod any) { r.enqueue(pod) },
	}); err != nil {
		return err
	}
	// When a namespace loses its label, its pods go on.
	if _, err := namespaces.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, namespace any) { r.enqueueAllOf(namespace) },
	}); err != nil {
		return err
	}
	factory.Start(end.Done())
	go func() {
		<-end.Done()
		r.queue.ShutDown()
	}()
	for range podsReporters {
		go r.work(end)
	}
	return nil
}

func (r *reporter) enqueue(item any) {
	if pod, ok := item.(*corev1.Pod); ok && r.waits(pod) {
		r.queue.Add(cache.MetaObjectToName(pod))
	}
}

func (r *reporter) enqueueAllOf(item any) {
	namespace, ok := item.(*corev1.Namespace)
	if !ok || hangs(namespace) {
		return
	}
	// A lister of a cache gives no error.
	pods, _ := r.pods.Pods(namespace.Name).List(labels.Everything())
	for _, pod := range pods {
		r.enqueue(pod)
	}
}

func (r *reporter) waits(pod *corev1.Pod) bool {
	return pod.Namespace != r.foreign && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending
}

func (r *reporter) work(end context.Context) {
	for {
		item, shutdown := r.queue.Get()
		if shutdown {
			return
		}
		if err := r.report(end, item.(cache.ObjectName)); err == nil {
			r.queue.Forget(item)
		} else {
			fmt.Fprintf(r.log, "%s: %v\n", item, err)
			r.queue.AddRateLimited(item)
		}
		r.queue.Done(item)
	}
}

func (r *reporter) report(end context.Context, name cache.ObjectName) error {
	pod, err := r.pods.Pods(name.Namespace).Get(name.Name)
	if err != nil || !r.waits(pod) {
		return nil
	}
	// Read live: a test that has set the label relies on it from that moment.
	namespace, err := r.client.CoreV1().Namespaces().Get(end, name.Namespace, metav1.GetOptions{})
	if err != nil {
		return ignoreNotFound(err)
	}
	if hangs(namespace) {
		return nil
	}
	done := pod.DeepCopy()
	complete(done)
	_, err = r.client.CoreV1().Pods(pod.Namespace).UpdateStatus(end, done, metav1.UpdateOptions{})
	return ignoreNotFound(err)
}

func hangs(namespace *corev1.Namespace) bool { return namespace.Labels[podsLabel] == podsHang }

// ignoreNotFound leaves out that the pod or its namespace has gone.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
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
