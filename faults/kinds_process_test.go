package faults_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mailgate/mailgate/faults/judge"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/servertest"
)

var (
	// killed is for a node whose sends under way are unknown.
	killed  = judge.Terms{Gone: true, Fails: []string{"delivery-unknown"}}
	noFiles = judge.Terms{Gone: true, Fails: []string{"relay-unavailable"}}
)

// processKinds are the faults of a node itself, and of the machine under it.
var processKinds = []*kind{
	{name: "node-killed", store: onRedis, terms: killed, effect: cutOff,
		inject: (*rig).killNode, repair: (*rig).repairByUndo},
	{name: "node-killed-disk", store: onDisk, nodes: 1, terms: killed, effect: cutOff,
		inject: (*rig).killNode, repair: (*rig).repairByUndo},
	{name: "node-terminated", store: onRedis, terms: judge.Terms{Gone: true}, effect: notReached, inject: (*rig).terminateNode, repair: (*rig).repairByUndo},
	{name: "node-clock", store: onRedis, program: skewed, terms: quiet, effect: misdates,
		inject: (*rig).setClock, repair: (*rig).repairByUndo},
	{name: "node-clock-disk", store: onDisk, nodes: 1, program: skewed, terms: setClocks, effect: clockOff,
		inject: (*rig).setClock, repair: (*rig).repairByUndo},
	{name: "node-files", store: onRedis, needs: noLimits, terms: noFiles, effect: logs("no connection can be accepted"),
		inject: (*rig).takeFiles, repair: (*rig).repairByUndo},
	{name: "disk-full", store: onDisk, nodes: 1, within: onSmallDisk, needs: noMounts, terms: judge.Terms{Fails: noHistory}, effect: noStore,
		inject: (*rig).fillDisk, repair: (*rig).repairByUndo},
}

// repairByUndo repairs as the injection has said.
func (s *rig) repairByUndo() { s.undo() }

// killNode kills a node while what it has admitted waits for a relay that takes its time.
func (s *rig) killNode() {
	at := []fault.Step{fault.MAIL, fault.RCPT, fault.DATA, fault.Dot}[s.rng.IntN(4)]
	s.relays.first.Play(fault.Script{At: at, Kind: fault.Drip, DripEvery: 20 * time.Millisecond})
	time.Sleep(500 * time.Millisecond)
	victim := s.node(s.rng)
	victim.kill()
	s.relays.first.Play(fault.Script{})
	s.undo = victim.start
}

// terminateNode ends a node in good order: what it is answering gets its answer.
func (s *rig) terminateNode() {
	victim := s.node(s.rng)
	victim.stop()
	s.undo = victim.start
}

// setClock sets a node's clock 90 s ahead or back.
func (s *rig) setClock() {
	victim := s.rng.IntN(len(s.nodes))
	s.writeClock(victim, []string{"90", "-90"}[s.rng.IntN(2)])
	s.undo = func() { s.writeClock(victim, "0") }
}

func (s *rig) writeClock(node int, seconds string) {
	if err := os.WriteFile(s.clock(node), []byte(seconds), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// filesOf is how many files a node has open.
func (s *rig) filesOf(n *node) int {
	open, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(n.cmd.Process.Pid), "fd"))
	if err != nil {
		s.t.Fatal(err)
	}
	return len(open)
}

// takeFiles leaves a node no more files than it has open when its callers reconnect.
func (s *rig) takeFiles() {
	victim := s.node(s.rng)
	s.caller.closeIdle()
	open := s.filesOf(victim)
	for range 20 { // it may be closing those that hung up
		time.Sleep(50 * time.Millisecond)
		open = min(open, s.filesOf(victim))
	}
	before := s.limitFiles(victim, strconv.Itoa(open))
	var strangers []net.Conn
	for range 16 { // the load may be content with the connections that it has
		stranger, err := net.Dial("tcp", strings.TrimPrefix(*victim.url.Load(), "http://"))
		if err != nil {
			s.t.Fatal(err)
		}
		strangers = append(strangers, stranger)
	}
	s.undo = func() {
		s.limitFiles(victim, before)
		for _, stranger := range strangers {
			stranger.Close()
		}
	}
}

// limitFiles says how many files a node may have open, and returns what it was.
func (s *rig) limitFiles(n *node, most string) (before string) {
	prlimit := func(args ...string) string {
		out, err := exec.Command("prlimit", append(args, "--pid", strconv.Itoa(n.cmd.Process.Pid))...).CombinedOutput()
		if err != nil {
			s.t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	before = prlimit("--nofile", "--raw", "--noheadings", "--output", "SOFT")
	prlimit("--nofile=" + most + ":")
	return before
}

// noLimits says why a node's files cannot be limited while it runs, if so.
func noLimits() string {
	if _, err := exec.LookPath("prlimit"); err != nil {
		return fmt.Sprintf("this system sets no limits of others: %v", err)
	}
	return ""
}

// onSmallDisk runs a node with its data on a small file system of its own.
func onSmallDisk(s *rig) []string {
	data := filepath.Join(s.dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		s.t.Fatal(err)
	}
	return append(unshare(), "sh", "-c", `mount -t tmpfs -o size=96m tmpfs "$0" && exec "$@"`, data)
}

// unshare gives a command mounts of its own.
func unshare() []string {
	if os.Getuid() == 0 {
		return []string{"unshare", "--mount"}
	}
	return []string{"unshare", "--mount", "--map-root-user"}
}

// noMounts says why there can be no file system of our own here, if so.
func noMounts() string {
	command := append(unshare(), "true")
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		return fmt.Sprintf("this system gives no mounts of one's own: %v %s", err, out)
	}
	return ""
}

// fillDisk takes all that the node's file system has.
func (s *rig) fillDisk() {
	name := filepath.Join("/proc", strconv.Itoa(s.nodes[0].cmd.Process.Pid), "root", s.dir, "data", "filler")
	servertest.Fill(s.t, name)
	s.undo = func() {
		if err := os.Remove(name); err != nil {
			s.t.Error(err)
		}
	}
}
