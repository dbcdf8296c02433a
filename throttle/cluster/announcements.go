package cluster

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/redis/go-redis/v9"
)

const (
	beatEvery  = 100 * time.Millisecond
	beatsALook = 10                     // a Cluster is asked for its masters once in so many beats
	maxSilent  = 200 * time.Millisecond // since the last heartbeat that came back
)

// listen forgets the keys that are announced, and everything where announcements may have been lost.
func (m *Memory) listen() {
	for m.work.Err() == nil {
		m.subscribe()
		m.Forget()
		select {
		case <-time.After(beatEvery):
		case <-m.work.Done():
		}
	}
}

// subscribe listens until nothing has come for a second, though heartbeats are sent.
func (m *Memory) subscribe() {
	channel := m.client.Subscribe(m.work, m.channel, m.beats)
	defer channel.Close()
	defer context.AfterFunc(m.work, func() { _ = channel.Close() })()
	for m.work.Err() == nil {
		received, err := channel.ReceiveTimeout(m.work, time.Second)
		if err != nil {
			return
		}
		switch received := received.(type) {
		case *redis.Subscription: // also after the library has connected again
			m.Forget()
		case *redis.Message:
			m.hear(received)
		}
	}
}

// hear takes a message. A server sends messages in order: when a heartbeat arrives, so have all
// announcements of its master that are older.
func (m *Memory) hear(message *redis.Message) {
	if message.Channel != m.beats {
		m.forget(message.Payload)
		return
	}
	at, address, _ := strings.Cut(message.Payload, " ")
	if sent, err := strconv.ParseInt(at, 10, 64); err == nil {
		m.heard.Store(address, sent)
	}
}

// hears reports whether announcements of a master arrive.
func (m *Memory) hears(address string) bool {
	sent, ever := m.heard.Load(address)
	return ever && sinceBegan()-sent.(int64) <= maxSilent.Microseconds()
}

// beat sends heartbeats through each master.
func (m *Memory) beat() {
	again := time.NewTicker(beatEvery)
	defer again.Stop()
	var masters []*redis.Client
	for beat := 0; ; beat++ {
		select {
		case <-again.C:
		case <-m.work.Done():
			return
		}
		if beat%beatsALook == 0 {
			masters, _ = redisx.Masters(m.work, m.client)
		}
		for _, master := range masters {
			m.background.Go(func() { m.beatThrough(master) }) // one that hangs does not hold up the others
		}
	}
}

// beatThrough sends a heartbeat, unless that takes so long that it is worth nothing.
func (m *Memory) beatThrough(master *redis.Client) {
	ctx, cancel := context.WithTimeout(m.work, maxSilent)
	defer cancel()
	address := ""
	if _, cluster := m.client.(*redis.ClusterClient); cluster {
		address = master.Options().Addr
	}
	_ = master.Publish(ctx, m.beats, strconv.FormatInt(sinceBegan(), 10)+" "+address).Err()
}
