package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// A redisServer is a redis-server on a free port of this machine that keeps nothing.
type redisServer struct {
	addr    string
	client  *redis.Client
	process *exec.Cmd
}

// withRedis starts a server for as long as use runs.
func withRedis(use func(*redisServer) error) (err error) {
	s, err := startRedis()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	return use(s)
}

func startRedis() (*redisServer, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	process := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port,
		"--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction")
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("starting redis-server: %w", err)
	}
	s := &redisServer{addr: addr, process: process, client: redis.NewClient(&redis.Options{Addr: addr})}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := s.client.Ping(context.Background()).Err()
		if err == nil {
			return s, nil
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("redis-server does not answer: %w", err), s.stop())
		}
	}
}

func (s *redisServer) stop() error {
	err := errors.Join(s.client.Close(), s.process.Process.Kill())
	_ = s.process.Wait() // it was killed, and says so
	return err
}

// account runs a round and adds what the server itself says that it spent on scripts.
func (s *redisServer) account(decisions int, round func() (float64, error)) (cost, error) {
	ctx := context.Background()
	if err := s.client.ConfigResetStat(ctx).Err(); err != nil {
		return cost{}, err
	}
	wall, err := round()
	if err != nil {
		return cost{}, err
	}
	stats, err := s.client.Info(ctx, "commandstats").Result()
	if err != nil {
		return cost{}, err
	}
	spent := 0.0
	for _, match := range scriptStats.FindAllStringSubmatch(stats, -1) {
		usec, err := strconv.ParseFloat(match[1], 64)
		if err != nil {
			return cost{}, err
		}
		spent += usec
	}
	return cost{wall: wall, server: spent / float64(decisions)}, nil
}

// What scripts call is inside the time of the script.
var scriptStats = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=\d+,usec=(\d+)`)
