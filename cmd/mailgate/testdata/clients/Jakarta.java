import jakarta.mail.*;
import jakarta.mail.internet.*;
import java.util.Arrays;
import java.util.Properties;

// Jakarta Mail, as Keycloak and Spring send.
public class Jakarta {
    public static void main(String[] to) throws Exception {
        Properties settings = new Properties();
        settings.put("mail.smtp.host", System.getenv("SMTP_HOST"));
        settings.put("mail.smtp.port", System.getenv("SMTP_PORT"));
        settings.put("mail.smtp.auth", "true");
        Session session = Session.getInstance(settings);
        MimeMessage message = new MimeMessage(session);
        message.setFrom("no-reply@acme.example");
        message.setRecipients(Message.RecipientType.TO, String.join(",", to));
        message.setSubject("code");
        message.setText("123456");
        try {
            Transport.send(message, System.getenv("SMTP_USER"), System.getenv("SMTP_PASSWORD"));
        } catch (SendFailedException e) {
            System.err.println("invalid " + Arrays.toString(e.getInvalidAddresses()) + ", unsent " + Arrays.toString(e.getValidUnsentAddresses()));
            for (Exception next = e; next != null; next = ((MessagingException) next).getNextException()) {
                System.err.println(next.getMessage());
            }
            System.exit(1);
        }
    }
}
