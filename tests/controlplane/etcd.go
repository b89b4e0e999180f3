package main

import (
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// runEtcd serves one member that keeps its data in DIR and prints its client URL as the first line of standard output.
func runEtcd(args []string) int {
	if len(args) != 1 {
		fail(os.Stderr)
	}
	// Port 0: the kernel picks one that is free, and nobody can take it between picking and listening.
	loopback := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg := embed.NewConfig()
	cfg.Dir = args[0]
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = loopback, loopback
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = loopback, loopback
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	// The data dies with the test. Nothing that a client can see changes without the fsync.
	cfg.UnsafeNoFsync = true
	// Ten times a second by default, also where nothing else happens. Reads see what is not committed yet.
	cfg.BackendBatchInterval = 2 * time.Second
	cfg.LogLevel = "warn"
	// It would dial the advertised port 0 for ever, and nobody speaks JSON to etcd.
	cfg.EnableGRPCGateway = false
	// A hundred thousand releases take more than the 2 GiB that are admitted by default.
	cfg.QuotaBackendBytes = 8 << 30
	// Snapshots only shorten a restart, which there is none of.
	cfg.SnapshotCount = 1_000_000_000

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)

	member, err := embed.StartEtcd(cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 1
	}
	defer member.Close()
	select {
	case <-member.Server.ReadyNotify():
	case <-time.After(30 * time.Second):
		fmt.Fprintln(os.Stderr, "etcd: not ready after 30 s")
		return 1
	}
	fmt.Printf("http://%s\n", member.Clients[0].Addr())
	select {
	case <-stop:
		return 0
	case err := <-member.Err():
		fmt.Fprintln(os.Stderr, "etcd:", err)
		return 1
	}
}
