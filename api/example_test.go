package api_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/mailgate/mailgate"
	"github.com/mailgate/mailgate/api"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/delivery"
	"github.com/mailgate/mailgate/mailer/message"
	"github.com/mailgate/mailgate/mailer/relay"
	"github.com/mailgate/mailgate/mailer/sandbox"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/rules"
)

// A whole mailgate in one process: a limiter in memory, a relay that keeps what it
// gets, and the API in front.
func Example() {
	store, _ := cache.Open(cache.Options{})
	defer store.Close()

	box, _ := sandbox.Start(sandbox.Options{})
	defer box.Close()
	where, _ := relay.ParseURL(box.URL())
	relays, _ := relay.New([]relay.URL{where}, relay.Options{})
	defer relays.Close(context.Background())

	templates, _ := message.LoadTemplates(nil, "en")
	from, _ := message.ParseSender("Acme <no-reply@acme.example>")
	composer, _ := message.NewComposer(from, templates)
	keys, _ := api.ParseKeys("shop:a-secret-of-the-shop")

	mailboxes := func(by throttle.Policy) *rules.Set {
		set, _ := rules.New(rules.Options{}, rules.Rule{Name: rules.MailboxRule, By: rules.ByMailbox, Limiter: local.New(store.Table("mailboxes"), by, nil), Exact: true})
		return set
	}

	server, err := api.New(api.Options{
		Live: api.Live{Rules: mailboxes(throttle.DefaultPolicy()), Composer: composer}, Relay: delivery.FromRelays(relays),
		APIKeys: keys, OpenAPI: mailgate.OpenAPI,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	go server.Serve(listener)
	defer server.Shutdown(context.Background())

	for i := range 3 {
		if i == 2 { // a kinder policy; what was sent still counts
			kinder, _ := throttle.ParsePolicy("minute=2/60s")
			server.Reload(api.Live{Rules: mailboxes(kinder)})
		}
		request, _ := http.NewRequest("POST", "http://"+listener.Addr().String()+"/send-code",
			strings.NewReader(`{"email":"alice@example.com"}`))
		request.Header.Set("Authorization", "Bearer a-secret-of-the-shop")
		request.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			fmt.Println(err)
			return
		}
		var body bytes.Buffer
		body.ReadFrom(answer.Body)
		answer.Body.Close()
		fmt.Println(answer.Status, strings.Contains(body.String(), `"limit":"minute"`))
	}
	// Output:
	// 200 OK true
	// 429 Too Many Requests true
	// 200 OK true
}

func ExampleParseKeys() {
	keys, err := api.ParseKeys("shop:a-secret-of-the-shop,blog:another-one")
	fmt.Println(keys.IsZero(), err)
	_, err = api.ParseKeys("a-secret-without-a-name")
	fmt.Println(err)
	// Output:
	// false <nil>
	// key 1 must be written name:secret
}
