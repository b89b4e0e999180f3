package main

import (
	"context"
	"errors"
	"fmt"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	helmrelease "helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/release/common"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
)

// maxHistory is the default of a HelmRelease.
const maxHistory = 5

// take does what the step says about a release with these records and objects, and returns the objects it put right.
func (f *flux) take(ctx context.Context, next step, history []*release.Release, drift []drifted) ([]string, error) {
	switch next {
	case stepUnlock:
		return nil, f.unlock(history[len(history)-1])
	case stepInstall:
		return nil, f.install(ctx)
	case stepUpgrade:
		return nil, f.upgrade(ctx)
	case stepRollback:
		return nil, f.rollback(previous(history))
	case stepUninstall:
		return nil, f.uninstall()
	case stepCorrectDrift:
		return correct(drift)
	default:
		return nil, fmt.Errorf("no step %q", next)
	}
}

// finalize is the reconcile of a HelmRelease that is being deleted: whatever is there is uninstalled.
func (f *flux) finalize() (bool, error) {
	history, err := f.history()
	if err != nil || len(history) == 0 {
		return err == nil, err
	}
	err = f.uninstall()
	f.report.add(f.newest(stepUninstall), err)
	return err == nil, nil
}

// unlock marks the record that a dead controller left pending, whoever wrote it and however young it is.
func (f *flux) unlock(latest *release.Release) error {
	latest.SetStatus(common.StatusFailed, fmt.Sprintf("Release unlocked from stale '%s' state", latest.Info.Status))
	return f.helm.Releases.Update(latest)
}

func (f *flux) install(ctx context.Context) error {
	install := action.NewInstall(f.helm)
	install.ReleaseName = f.release
	install.Namespace = f.targetNamespace
	install.Timeout = f.timeout
	install.DisableOpenAPIValidation = noSchemas
	install.WaitStrategy = f.waitStrategy()
	install.ServerSideApply = true
	install.ForceConflicts = true
	install.TakeOwnership = true
	if f.origin != "" {
		install.PostRenderer = origin(f.origin)
	}
	_, err := install.RunWithContext(ctx, f.chart, f.values)
	return err
}

func (f *flux) upgrade(ctx context.Context) error {
	upgrade := action.NewUpgrade(f.helm)
	upgrade.Namespace = f.targetNamespace
	upgrade.Timeout = f.timeout
	upgrade.DisableOpenAPIValidation = noSchemas
	upgrade.WaitStrategy = f.waitStrategy()
	upgrade.ResetValues = true
	upgrade.MaxHistory = maxHistory
	// As the release was installed.
	upgrade.ServerSideApply = "auto"
	upgrade.ForceConflicts = true
	upgrade.TakeOwnership = true
	if f.origin != "" {
		upgrade.PostRenderer = origin(f.origin)
	}
	_, err := upgrade.RunWithContext(ctx, f.release, f.chart, f.values)
	return err
}

func (f *flux) rollback(to *release.Release) error {
	rollback := action.NewRollback(f.helm)
	rollback.Version = to.Version
	rollback.Timeout = f.timeout
	rollback.WaitStrategy = f.waitStrategy()
	rollback.MaxHistory = maxHistory
	rollback.ServerSideApply = "auto"
	rollback.ForceConflicts = true
	return rollback.Run(f.release)
}

func (f *flux) uninstall() error {
	uninstall := action.NewUninstall(f.helm)
	uninstall.Timeout = f.timeout
	uninstall.WaitStrategy = f.waitStrategy()
	uninstall.DeletionPropagation = "background"
	_, err := uninstall.Run(f.release)
	return err
}

func (f *flux) waitStrategy() kube.WaitStrategy {
	if f.wait {
		return kube.StatusWatcherStrategy
	}
	return kube.HookOnlyStrategy
}

// previous is the newest record before the last that was deployed once, or nil.
func previous(history []*release.Release) *release.Release {
	for i := len(history) - 2; i >= 0; i-- {
		if status := history[i].Info.Status; status == common.StatusDeployed || status == common.StatusSuperseded {
			return history[i]
		}
	}
	return nil
}

// byRevision sorts stored records.
func byRevision(stored []helmrelease.Releaser) ([]*release.Release, error) {
	releases := make([]*release.Release, 0, len(stored))
	for _, one := range stored {
		r, ok := one.(*release.Release)
		if !ok {
			return nil, errors.New("a stored record is of an unknown version")
		}
		releases = append(releases, r)
	}
	releaseutil.SortByRevision(releases)
	return releases, nil
}
