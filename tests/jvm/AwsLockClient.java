import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClientOptions;
import com.amazonaws.services.dynamodbv2.LockItem;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;

/**
 * The lock client of AWS Labs, made and called as Hudi's provider does it.
 *
 * Arguments: endpoint, DynamoDB table, key, lease in milliseconds. Lines of the input: "take", which
 * is answered by true or false; "release", by whether the lock was still held. The end of the input
 * ends the process.
 */
public class AwsLockClient {
  public static void main(String[] arguments) throws Exception {
    DynamoDbClient service = DynamoDbClient.builder()
        .endpointOverride(URI.create(arguments[0]))
        .region(Region.US_EAST_1)
        .httpClient(UrlConnectionHttpClient.create())
        .build();
    long lease = Long.parseLong(arguments[3]);
    AmazonDynamoDBLockClient client = new AmazonDynamoDBLockClient(
        AmazonDynamoDBLockClientOptions.builder(service, arguments[1])
            .withTimeUnit(TimeUnit.MILLISECONDS)
            .withLeaseDuration(lease)
            .withHeartbeatPeriod(lease / 3)
            .withCreateHeartbeatBackgroundThread(true)
            .build());
    System.out.println(client.lockTableExists());
    Optional<LockItem> held = Optional.empty();
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      if (line.equals("take")) {
        held = client.tryAcquireLock(AcquireLockOptions.builder(arguments[2])
            .withAdditionalTimeToWaitForLock(100L)
            .withTimeUnit(TimeUnit.MILLISECONDS)
            .build());
        System.out.println(held.isPresent());
      } else {
        System.out.println(held.isPresent() && client.releaseLock(held.get()));
      }
    }
    System.exit(0);
  }
}
