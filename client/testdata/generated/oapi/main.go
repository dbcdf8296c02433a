// Command oapi sends twice with a client of oapi-codegen, and prints why the second was refused.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"acme.example/generated/api"
)

func main() {
	withKey := api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("GATE_KEY"))
		return nil
	})
	gate, err := api.NewClientWithResponses(os.Getenv("GATE_URL"), withKey)
	if err != nil {
		panic(err)
	}
	for range 2 {
		answer, err := gate.SendCodeWithResponse(context.Background(), &api.SendCodeParams{}, api.SendRequest{Email: os.Args[1]})
		if err != nil {
			panic(err)
		}
		if answer.JSON200 != nil {
			fmt.Println("sent", answer.JSON200.WaitMs)
		} else {
			fmt.Println("refused", answer.ApplicationproblemJSON429.Rule, answer.ApplicationproblemJSON429.Limit)
		}
	}
}
