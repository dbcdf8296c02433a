package gate_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/gate"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// A sign-in form that each visitor may get wrong twice a minute. What he gets right is
// not counted.
func Example() {
	minute, err := throttle.NewSlidingWindow(throttle.Tier{Name: "minute", Limit: 2, Window: time.Minute}, 60)
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := cache.Open(cache.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	guesses, err := gate.New(gate.Options{
		Limiter: local.New(store.Table("guesses"), minute, nil),
		Name:    "guesses",
		Release: func(status int) bool { return status < 400 },
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/sign-in", guesses, func(c *fiber.Ctx) error {
		if c.Query("password") != "correct" {
			return fiber.ErrForbidden
		}
		return c.SendString("welcome")
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go app.Listener(listener)
	defer app.Shutdown()

	for _, password := range []string{"correct", "123456", "correct", "letmein", "correct"} {
		answer, err := http.Post("http://"+listener.Addr().String()+"/sign-in?password="+password, "", nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		fmt.Println(password, answer.StatusCode)
	}
	// Output:
	// correct 200
	// 123456 403
	// correct 200
	// letmein 403
	// correct 429
}

// Somebody has used up his tries, and the support desk lets him start afresh.
func ExampleKeyOfUser() {
	hour, err := throttle.NewFixedWindow(throttle.Tier{Name: "hour", Limit: 1, Window: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := cache.Open(cache.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	limiter := local.New(store.Table("tries"), hour, nil)
	tries, err := gate.New(gate.Options{
		Limiter: limiter,
		User:    func(c *fiber.Ctx) (string, bool) { return c.Get("X-User"), c.Get("X-User") != "" },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	app := fiber.New()
	app.Post("/try", tries, func(c *fiber.Ctx) error { return c.SendString("tried") })
	try := func() {
		request := httptest.NewRequest("POST", "/try", nil)
		request.Header.Set("X-User", "bob")
		answer, err := app.Test(request)
		if err != nil {
			fmt.Println(err)
			return
		}
		answer.Body.Close()
		fmt.Println(answer.StatusCode)
	}

	try()
	try()
	fmt.Println(limiter.Reset(context.Background(), gate.KeyOfUser("bob")))
	try()
	// Output:
	// 200
	// 429
	// 1 <nil>
	// 200
}
