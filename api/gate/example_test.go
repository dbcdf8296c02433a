package gate_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/gate"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
)

// A sign-in form with two wrong passwords a minute for each user. Right ones are not counted,
// and the support desk resets a user.
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
	limiter := local.New(store.Table("guesses"), minute)
	guesses, err := gate.Fiber(gate.Options[*fiber.Ctx]{
		Limiter: limiter,
		Key:     func(c *fiber.Ctx) string { return c.Query("user") },
		Release: func(status int) bool { return status < 400 },
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	app := fiber.New()
	app.Post("/sign-in", guesses, func(c *fiber.Ctx) error {
		if c.Query("password") != "correct" {
			return fiber.ErrForbidden
		}
		return c.SendString("welcome")
	})
	signIn := func(password string) {
		answer, err := app.Test(httptest.NewRequest("POST", "/sign-in?user=bob&password="+password, nil))
		if err != nil {
			fmt.Println(err)
			return
		}
		answer.Body.Close()
		fmt.Println(password, answer.StatusCode)
	}
	for _, password := range []string{"correct", "123456", "correct", "letmein", "correct"} {
		signIn(password)
	}
	fmt.Println(limiter.Reset(context.Background(), gate.KeyOf("bob")))
	signIn("correct")
	// Output:
	// correct 200
	// 123456 403
	// correct 200
	// letmein 403
	// correct 429
	// 2 <nil>
	// correct 200
}
