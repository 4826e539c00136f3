import java.io.DataInputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.AlterClientQuotasRequestData;
import org.apache.kafka.common.message.ApiVersionsResponseData.ApiVersion;
import org.apache.kafka.common.message.CreateAclsRequestData;
import org.apache.kafka.common.message.ShareGroupDescribeRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ApiVersionsResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;

/** What the broker does not offer is refused at once, and in words that Kafka's own code reads. */
final class NotOffered {
    private NotOffered() {}

    static void all() throws Exception {
        admin();
        everyApi();
    }

    /** The admin client says so before its deadline, which is longer than anybody waits here. */
    private static void admin() throws Exception {
        try (Admin admin = Admin.create(Rig.settings("default.api.timeout.ms", "3600000"))) {
            Map<String, KafkaFuture<?>> asked = Map.of(
                "access rules", admin.describeAcls(AclBindingFilter.ANY).values(),
                "quotas", admin.describeClientQuotas(ClientQuotaFilter.all()).entities(),
                "credentials", admin.describeUserScramCredentials().all(),
                "tokens", admin.describeDelegationToken().delegationTokens(),
                "reassignments", admin.listPartitionReassignments().reassignments());
            for (Map.Entry<String, KafkaFuture<?>> one : asked.entrySet()) {
                try {
                    one.getValue().get(Rig.LONG_MS, TimeUnit.MILLISECONDS);
                    throw new AssertionError(one.getKey() + " are not offered");
                } catch (ExecutionException e) {
                    Rig.ensure(e.getCause() instanceof UnsupportedVersionException, one.getKey() + ": " + e.getCause());
                }
            }
        }
    }

    /** Whoever asks although it is not advertised reads UNSUPPORTED_VERSION: every API in every version of Kafka's. */
    private static void everyApi() throws Exception {
        ApiVersionsResponse offered = (ApiVersionsResponse) ask(ApiKeys.API_VERSIONS, (short) 3);
        int refused = 0;
        for (ApiKeys key : ApiKeys.values()) {
            if (!key.hasValidVersion()) {
                continue;
            }
            ApiVersion range = offered.apiVersion(key.id);
            for (short version = key.oldestVersion(); version <= key.latestVersion(true); version++) {
                if (range != null && version >= range.minVersion() && version <= range.maxVersion()) {
                    continue;
                }
                Set<Errors> said = ask(key, version).errorCounts().keySet();
                // An empty request gets an empty answer where errors stand with what was asked for.
                Rig.ensure(Set.of(Errors.UNSUPPORTED_VERSION).containsAll(without(said)), key + " " + version + ": " + said);
                refused += said.contains(Errors.UNSUPPORTED_VERSION) ? 1 : 0;
            }
        }
        Rig.ensure(refused > 50, "only " + refused + " were refused");
    }

    private static Collection<Errors> without(Collection<Errors> said) {
        return said.stream().filter(error -> error != Errors.NONE).toList();
    }

    private static ApiMessage request(ApiKeys key) {
        return switch (key) {
            case CREATE_ACLS -> new CreateAclsRequestData().setCreations(List.of(
                new CreateAclsRequestData.AclCreation().setResourceName("t").setPrincipal("User:u").setHost("*")));
            case ALTER_CLIENT_QUOTAS -> new AlterClientQuotasRequestData().setEntries(List.of(
                new AlterClientQuotasRequestData.EntryData().setEntity(List.of(
                    new AlterClientQuotasRequestData.EntityData().setEntityType("user").setEntityName("u")))
                    .setOps(List.of(new AlterClientQuotasRequestData.OpData().setKey("producer_byte_rate")))));
            case SHARE_GROUP_DESCRIBE -> new ShareGroupDescribeRequestData().setGroupIds(List.of("a", "b"));
            default -> key.messageType.newRequest();
        };
    }

    private static AbstractResponse ask(ApiKeys key, short version) throws Exception {
        RequestHeader header = new RequestHeader(key, version, "not-offered", 7);
        ByteBuffer bytes = RequestUtils.serialize(header.data(), header.headerVersion(), request(key), version);
        String[] address = Rig.BOOTSTRAP.split(":");
        try (Socket socket = new Socket(address[0], Integer.parseInt(address[1]))) {
            socket.getOutputStream().write(ByteBuffer.allocate(4).putInt(bytes.remaining()).array());
            socket.getOutputStream().write(bytes.array(), bytes.arrayOffset(), bytes.remaining());
            DataInputStream in = new DataInputStream(socket.getInputStream());
            byte[] answer = new byte[in.readInt()];
            in.readFully(answer);
            return AbstractResponse.parseResponse(ByteBuffer.wrap(answer), header);
        } catch (Exception e) {
            throw new AssertionError(key + " " + version, e);
        }
    }
}
