package gate

import (
	"context"
	"errors"
	"net"

	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/internal/report"
)

// Fiber makes the middleware for Fiber v2. Routes that use it are counted together.
func Fiber(o Options[*fiber.Ctx]) (fiber.Handler, error) {
	g, err := newGate(o)
	if err != nil {
		return nil, err
	}
	return g.handle, nil
}

// onFiber is an exchange. It writes through Fiber, so that a middleware in front can read the fields.
type onFiber struct{ c *fiber.Ctx }

func (x onFiber) context() context.Context { return x.c.UserContext() }

func (x onFiber) peer() string {
	if tcp, ok := x.c.Context().RemoteAddr().(*net.TCPAddr); ok {
		return KeyOfPeer(tcp.AddrPort().Addr())
	}
	return peerKey(x.c.Context().RemoteAddr().String())
}

func (x onFiber) set(name, value string) { x.c.Set(name, value) }

func (x onFiber) answer(status int, body []byte) error { return x.c.Status(status).Send(body) }

// next lets a panic reach the middleware that recovers it.
func (x onFiber) next(ends func(status int, own bool)) error {
	status := fiber.StatusInternalServerError
	defer func() {
		ends(status, x.c.GetRespHeader(report.RateLimit)+x.c.GetRespHeader(report.RateLimitPolicy) != "")
	}()
	err := x.c.Next()
	status = statusOf(x.c, err)
	return err
}

// statusOf returns the status that the answer will have: an error's is only written after the
// last middleware.
func statusOf(c *fiber.Ctx, err error) int {
	if err == nil {
		return c.Response().StatusCode()
	}
	if known, ok := errors.AsType[*fiber.Error](err); ok {
		return known.Code
	}
	return fiber.StatusInternalServerError
}
