package redisstore

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// newcomers are masters that another sends us on to before the Cluster names them. A master is
// named when it has a slot, and its first slot comes to it key by key.
type newcomers struct {
	mu     sync.Mutex
	of     map[string]*redis.Client // by address
	closed bool
}

// at is the client of the newcomer at the address, with the settings of the master that
// named it.
func (n *newcomers) at(address string, named *redis.Client) (*redis.Client, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errClosed
	}
	if client, known := n.of[address]; known {
		return client, nil
	}
	o := *named.Options()
	o.Addr, o.NodeAddress, o.MaxRetries = address, "", -1
	client := redis.NewClient(&o)
	if n.of == nil {
		n.of = map[string]*redis.Client{}
	}
	n.of[address] = client
	return client, nil
}

// settled notes that the Cluster names the master now. The old client is closed when the calls
// on it have ended, which take no longer than a read may.
func (n *newcomers) settled(address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if client, known := n.of[address]; known {
		delete(n.of, address)
		time.AfterFunc(client.Options().ReadTimeout, func() { _ = client.Close() })
	}
}

func (n *newcomers) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	for _, client := range n.of {
		_ = client.Close()
	}
}
