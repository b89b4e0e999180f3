package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// component is a child process: this program in one of its roles.
type component struct {
	name string
	log  string
	cmd  *exec.Cmd
	// Closed when the process has ended.
	done chan struct{}
	// Set when the end is asked for, so that it is no failure.
	stopping chan struct{}
}

// launch starts a role, or the program given for it, with its log in DIR/ROLE.log; its standard output goes there too
// unless given.
func (p *plane) launch(role, program string, stdout *os.File, args ...string) (*component, error) {
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		program = self
		args = append([]string{role}, args...)
	}
	c := &component{name: role, log: p.path(role + ".log"), done: make(chan struct{}), stopping: make(chan struct{})}
	// A component that starts again goes on in its log.
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c.cmd = exec.Command(program, args...)
	c.cmd.Stderr = log
	c.cmd.Stdout = log
	if stdout != nil {
		c.cmd.Stdout = stdout
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{
		// None survives this process, however it ends.
		Pdeathsig: syscall.SIGKILL,
		// Ctrl-C on a terminal reaches this process alone, which stops them in order.
		Setpgid: true,
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", role, err)
	}
	go func() {
		// The exit status is read from ProcessState.
		_ = c.cmd.Wait()
		close(c.done)
		select {
		case <-c.stopping:
		default:
			p.failed <- c
		}
	}()
	return c, nil
}

func (c *component) pid() int { return c.cmd.Process.Pid }

// wait polls until ready, and returns an error if the component ends or is late.
func (c *component) wait(end context.Context, ready func() bool) error {
	deadline := time.After(readyTimeout)
	pause := time.NewTicker(pollPause)
	defer pause.Stop()
	for {
		if ready() {
			return nil
		}
		select {
		case <-end.Done():
			return context.Canceled
		case <-c.done:
			return c.ended()
		case <-deadline:
			return c.late()
		case <-pause.C:
		}
	}
}

// ended describes a component that has ended by itself.
func (c *component) ended() error {
	return fmt.Errorf("%s ended: %s; the end of %s:\n%s", c.name, c.cmd.ProcessState, c.log, c.tail())
}

func (c *component) late() error {
	return fmt.Errorf("%s is not ready after %s; the end of %s:\n%s", c.name, readyTimeout, c.log, c.tail())
}

func (c *component) tail() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return strings.Join(lines, "\n")
}

func (c *component) logged(text string) bool {
	log, err := os.ReadFile(c.log)
	return err == nil && strings.Contains(string(log), text)
}

// stop asks twice before it kills: an API server that drains ends at once on the second SIGTERM.
func (c *component) stop() {
	c.end(syscall.SIGTERM, stopPatience)
}

// end sends the signal, again after some patience, and then kills. A component that has ended already is fine.
func (c *component) end(s syscall.Signal, patience time.Duration) {
	close(c.stopping)
	for _, s := range []syscall.Signal{s, s, syscall.SIGKILL} {
		if err := c.cmd.Process.Signal(s); errors.Is(err, os.ErrProcessDone) {
			break
		}
		select {
		case <-c.done:
			return
		case <-time.After(patience):
		}
	}
	<-c.done
}
