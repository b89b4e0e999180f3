package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
)

// helmController is the field manager of everything that Flux writes.
const helmController = "helm-controller"

// What to do about a failed release.
const (
	retryOnFailure     = "RetryOnFailure"
	remediateOnFailure = "RemediateOnFailure"
)

// flux is one reconcile of a HelmRelease.
type flux struct {
	release          string
	storageNamespace string
	targetNamespace  string
	origin           string
	strategy         string
	timeout          time.Duration
	wait             bool
	correctDrift     bool

	chart  *chart.Chart
	values map[string]any
	helm   *action.Configuration
	report *report
}

func runFlux(ctx context.Context, args []string, report *report) (bool, error) {
	var d description
	f := flux{report: report}
	flags := newFlags("flux", &d)
	as := flags.String("as", "", "the user to impersonate for records and objects")
	flags.StringVar(&f.release, "release", "", "the release's name, shortened if need be")
	flags.StringVar(&f.storageNamespace, "storage-namespace", "", "where the records are")
	flags.StringVar(&f.targetNamespace, "target-namespace", "", "where the objects are; default: with the records")
	flags.StringVar(&f.origin, "origin", "", "the HelmRelease as NAMESPACE/NAME, for the labels of the objects")
	flags.StringVar(&f.strategy, "strategy", remediateOnFailure, retryOnFailure+" or "+remediateOnFailure)
	flags.DurationVar(&f.timeout, "timeout", 5*time.Minute, "for each wait and hook")
	flags.BoolVar(&f.wait, "wait", false, "wait until the objects are ready")
	flags.BoolVar(&f.correctDrift, "correct-drift", false, "put objects right that differ from the release")
	uninstall := flags.Bool("uninstall", false, "the HelmRelease is being deleted")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if err := required(flags, "release", "storage-namespace"); err != nil {
		return false, err
	}
	if f.strategy != retryOnFailure && f.strategy != remediateOnFailure {
		return false, fmt.Errorf("--strategy is %s or %s", retryOnFailure, remediateOnFailure)
	}
	if f.targetNamespace == "" {
		f.targetNamespace = f.storageNamespace
	}
	f.release, f.values = shortened(f.release), d.values
	cluster, err := connect(d.kubeconfig, *as, f.targetNamespace, helmController)
	if err != nil {
		return false, err
	}
	kube.ManagedFieldsManager = helmController
	// Not by Init: that puts the records where the objects are.
	f.helm = action.NewConfiguration(action.ConfigurationSetLogger(slog.NewTextHandler(os.Stderr, nil)))
	f.helm.RESTClientGetter = cluster.getter
	f.helm.KubeClient = kube.New(cluster.getter)
	f.helm.Releases = storage.Init(driver.NewSecrets(cluster.client.CoreV1().Secrets(f.storageNamespace)))
	if *uninstall {
		return f.finalize()
	}
	if err := required(flags, "chart"); err != nil {
		return false, err
	}
	if f.chart, err = loader.LoadDir(d.chart); err != nil {
		return false, err
	}
	return f.reconcile(ctx)
}

// shortened is the name that Flux gives to a release whose own is too long for Helm.
func shortened(name string) string {
	const longest, kept, digits = 53, 40, 12
	if len(name) <= longest {
		return name
	}
	return fmt.Sprintf("%s-%.*x", name[:kept], digits/2, sha256.Sum256([]byte(name)))
}

// step is an action of the state machine.
type step string

const (
	stepNone         step = ""
	stepUnlock       step = "unlock"
	stepInstall      step = "install"
	stepUpgrade      step = "upgrade"
	stepRollback     step = "rollback"
	stepUninstall    step = "uninstall"
	stepCorrectDrift step = "correct-drift"
)

// reconcile looks at the release, acts, and looks again, until it is as described or an action is due a second time.
func (f *flux) reconcile(ctx context.Context) (bool, error) {
	taken := map[step]bool{}
	for {
		history, err := f.history()
		if err != nil {
			return false, err
		}
		next := stepNone
		drift, err := f.drift(ctx, history)
		if err == nil {
			next, err = f.next(history, drift, taken)
		}
		if err != nil {
			// helm-controller's StateError: only a change from outside helps.
			f.report.add(f.newest(stepNone), err)
			return false, nil
		}
		if next == stepNone || taken[next] {
			return next == stepNone, nil
		}
		taken[next] = true
		objects, err := f.take(ctx, next, history, drift)
		done := f.newest(next)
		done.Objects = objects
		f.report.add(done, err)
		if next == stepUnlock && err != nil {
			// Somebody else's lock that may not be broken: wait for the next reconcile.
			return false, nil
		}
	}
}

// next is what is due for a release with these records and objects, after the steps taken in this reconcile.
func (f *flux) next(history []*release.Release, drift []drifted, taken map[step]bool) (step, error) {
	if len(history) == 0 {
		return stepInstall, nil
	}
	latest := history[len(history)-1]
	switch status := latest.Info.Status; {
	case status == common.StatusUninstalled:
		return stepInstall, nil
	case status.IsPending():
		return stepUnlock, nil
	case status == common.StatusFailed:
		// What a dead controller left behind is in no HelmRelease's history, which is then cleared: nothing to remediate.
		unmanaged := taken[stepUnlock] && !taken[stepInstall] && !taken[stepUpgrade]
		switch {
		case f.strategy == retryOnFailure || unmanaged:
			return stepUpgrade, nil
		case previous(history) != nil:
			return stepRollback, nil
		default:
			return stepUninstall, nil
		}
	case status == common.StatusDeployed && !f.inSync(latest):
		return stepUpgrade, nil
	case status == common.StatusDeployed && len(drift) > 0:
		return stepCorrectDrift, nil
	case status == common.StatusDeployed:
		return stepNone, nil
	default:
		return stepNone, fmt.Errorf("cannot determine the state of release %s with status '%s'", f.release, status)
	}
}

// history is the release's records, by revision.
func (f *flux) history() ([]*release.Release, error) {
	stored, err := f.helm.Releases.History(f.release)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return byRevision(stored)
}

// newest describes the newest record after a step.
func (f *flux) newest(after step) act {
	done := act{Action: string(after)}
	if history, err := f.history(); err == nil && len(history) > 0 {
		latest := history[len(history)-1]
		done.Revision, done.Status = latest.Version, latest.Info.Status.String()
	}
	return done
}

// inSync says whether a record is of the described chart and values.
func (f *flux) inSync(r *release.Release) bool {
	have, want := r.Chart.Metadata, f.chart.Metadata
	return have.Name == want.Name && have.Version == want.Version && bytes.Equal(canonical(r.Config), canonical(f.values))
}

// canonical is values as bytes that are equal if they are.
func canonical(values map[string]any) []byte {
	if len(values) == 0 {
		return []byte("{}")
	}
	text, err := json.Marshal(values)
	if err != nil {
		// They were read from JSON.
		panic(err)
	}
	return text
}
