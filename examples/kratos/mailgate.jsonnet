// Kratos makes and checks the code; its name depends on the kind of the email.
function(ctx)
  local data = ctx.template_data;
  local codes = [data[name] for name in ["login_code", "registration_code", "recovery_code", "verification_code"] if name in data];
  { email: ctx.recipient, code: codes[0] }
