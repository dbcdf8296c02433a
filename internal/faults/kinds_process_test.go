package faults_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mailgate/mailgate/internal/faults/judge"
	"github.com/mailgate/mailgate/internal/mailtest/fault"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

var (
	// killed is for a node whose sends under way are unknown.
	killed  = judge.Terms{Gone: true, Fails: []string{"delivery-unknown"}}
	noFiles = judge.Terms{Gone: true, Fails: []string{"relay-unavailable"}}
)

// processKinds are the faults of a node itself, and of the machine under it.
var processKinds = []*kind{
	{name: "node-killed", store: onRedis, terms: killed, effect: cutOff, inject: (*rig).killNode},
	{name: "node-killed-disk", store: onDisk, nodes: 1, terms: killed, effect: cutOff, inject: (*rig).killNode},
	{name: "node-terminated", store: onRedis, terms: judge.Terms{Gone: true}, effect: notReached, inject: (*rig).terminateNode},
	{name: "node-clock", store: onRedis, program: skewed, terms: quiet, effect: misdates, inject: (*rig).setClock},
	{name: "node-clock-disk", store: onDisk, nodes: 1, program: skewed, terms: setClocks, effect: clockOff, inject: (*rig).setClock},
	{name: "node-files", store: onRedis, terms: noFiles, effect: logs("no connection can be accepted"), inject: (*rig).takeFiles},
	{name: "disk-full", store: onDisk, nodes: 1, within: onSmallDisk, terms: judge.Terms{Fails: noHistory}, effect: noStore, inject: (*rig).fillDisk},
}

// killNode kills a node while what it has admitted waits for a relay that takes its time.
func (s *rig) killNode() func() {
	at := []fault.Step{fault.MAIL, fault.RCPT, fault.DATA, fault.Dot}[s.rng.IntN(4)]
	s.relays[0].Play(fault.Script{At: at, Kind: fault.Drip, DripEvery: 20 * time.Millisecond})
	time.Sleep(500 * time.Millisecond)
	victim := s.node(s.rng)
	victim.kill()
	s.relays[0].Play(fault.Script{})
	return victim.start
}

// terminateNode ends a node in good order: what it is answering gets its answer.
func (s *rig) terminateNode() func() {
	victim := s.node(s.rng)
	victim.stop()
	return victim.start
}

// setClock sets a node's clock 90 s ahead or back.
func (s *rig) setClock() func() {
	victim := s.rng.IntN(len(s.nodes))
	servertest.Write(s.t, s.clock(victim), []string{"90", "-90"}[s.rng.IntN(2)])
	return func() { servertest.Write(s.t, s.clock(victim), "0") }
}

// filesOf is how many files a node has open.
func (s *rig) filesOf(n *node) int {
	return len(must.Get(os.ReadDir(filepath.Join("/proc", strconv.Itoa(n.Cmd.Process.Pid), "fd")))(s.t))
}

// takeFiles leaves a node no more files than it has open when its callers reconnect.
func (s *rig) takeFiles() func() {
	victim := s.node(s.rng)
	s.client.CloseIdleConnections()
	open := s.filesOf(victim)
	for range 20 { // it may be closing those that hung up
		time.Sleep(50 * time.Millisecond)
		open = min(open, s.filesOf(victim))
	}
	s.limitFiles(victim, open)
	var conns []net.Conn
	for range 16 { // the load may be content with the connections that it has
		conns = append(conns, victim.dial())
	}
	return func() {
		s.limitFiles(victim, 4096)
		for _, conn := range conns {
			conn.Close()
		}
	}
}

// limitFiles says how many files a node may have open.
func (s *rig) limitFiles(n *node, most int) {
	out, err := exec.Command("prlimit", fmt.Sprintf("--nofile=%d:", most), "--pid", strconv.Itoa(n.Cmd.Process.Pid)).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}

// onSmallDisk runs a node with its data on a small file system of its own.
func onSmallDisk(s *rig) []string {
	if err := os.MkdirAll(s.data(0), 0o700); err != nil {
		s.t.Fatal(err)
	}
	command := []string{"unshare", "--mount"}
	if os.Getuid() != 0 {
		command = append(command, "--map-root-user")
	}
	return append(command, "sh", "-c", `mount -t tmpfs -o size=96m tmpfs "$0" && exec "$@"`, s.data(0))
}

// fillDisk takes all that the node's file system has.
func (s *rig) fillDisk() func() {
	name := filepath.Join("/proc", strconv.Itoa(s.nodes[0].Cmd.Process.Pid), "root", s.data(0), "filler")
	servertest.Fill(s.t, name)
	return func() {
		if err := os.Remove(name); err != nil {
			s.t.Error(err)
		}
	}
}
