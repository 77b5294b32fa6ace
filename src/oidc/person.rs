//! The end of a login: a code becomes tokens, and a valid token becomes a person.
//!
//! Must never know: what a person may do.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use openidconnect::{
    AccessToken, AdditionalClaims, AuthType, AuthorizationCode, ClaimsVerificationError, Client,
    ClientId, ClientSecret, EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet,
    IdTokenClaims, IdTokenFields, IdTokenVerifier, Nonce, OAuth2TokenResponse, PkceCodeVerifier,
    RedirectUrl, RequestTokenError, SignatureVerificationError, StandardErrorResponse,
    StandardTokenResponse, TokenResponse, UserInfoClaims,
    core::{
        CoreAuthDisplay, CoreAuthPrompt, CoreClientAuthMethod, CoreErrorResponseType,
        CoreGenderClaim, CoreJsonWebKey, CoreJweContentEncryptionAlgorithm,
        CoreJwsSigningAlgorithm, CoreProviderMetadata, CoreRevocableToken,
        CoreRevocationErrorResponse, CoreTokenIntrospectionResponse, CoreTokenType,
    },
};
use serde::{Deserialize, Serialize};

use super::{Provider, ProviderFault, ProviderSettings, http::HttpClient};
use crate::{
    access::{Person, ProviderLogin, display_name},
    model::{UnixMillis, with_causes},
};

/// The accepted signatures: all with public keys.
const SIGNATURES: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// The claims beyond those of the standard, by name.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
pub(super) struct OtherClaims(HashMap<String, serde_json::Value>);

impl AdditionalClaims for OtherClaims {}

type Tokens = StandardTokenResponse<
    IdTokenFields<
        OtherClaims,
        EmptyExtraTokenFields,
        CoreGenderClaim,
        CoreJweContentEncryptionAlgorithm,
        CoreJwsSigningAlgorithm,
    >,
    CoreTokenType,
>;

/// The daemon as a client of a provider.
pub(super) type ProviderClient = Client<
    OtherClaims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    Tokens,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// Returns the daemon as a client; only requests for tokens need the secret.
pub(super) fn client(
    settings: &ProviderSettings,
    metadata: &CoreProviderMetadata,
    secret: Option<String>,
) -> Result<ProviderClient, ProviderFault> {
    let redirect = RedirectUrl::new(settings.redirect_uri());
    let redirect = redirect.map_err(|cause| ProviderFault::Client(with_causes(&cause)))?;
    // A provider that names no methods accepts Basic.
    let methods = metadata.token_endpoint_auth_methods_supported();
    let accepts = |method| {
        methods.is_none_or(|methods: &Vec<CoreClientAuthMethod>| methods.contains(&method))
    };
    let auth_type = if accepts(CoreClientAuthMethod::ClientSecretBasic) {
        AuthType::BasicAuth
    } else {
        AuthType::RequestBody
    };
    let (id, secret) = (ClientId::new(settings.client_id.clone()), secret.map(ClientSecret::new));
    Ok(Client::from_provider_metadata(metadata.clone(), id, secret)
        .set_redirect_uri(redirect)
        .set_auth_type(auth_type))
}

impl Provider {
    /// Returns the person who logged in at the provider with the code of a login.
    ///
    /// # Errors
    /// The provider does not answer or refuses the code, or its token is not valid.
    pub fn person(
        &self,
        code: String,
        login: &ProviderLogin,
        now: UnixMillis,
    ) -> Result<Person, ProviderFault> {
        let settings = self.settings();
        let secret = settings.client_secret.read()?;
        let http = HttpClient::new(settings)?;
        let metadata = self.metadata(&http, now)?;
        let client = client(settings, &metadata, Some(secret))?;
        let request = client.exchange_code(AuthorizationCode::new(code)).map_err(unavailable)?;
        let tokens = request
            .set_pkce_verifier(PkceCodeVerifier::new(login.verifier.clone()))
            .request(&http)
            .map_err(token_fault)?;
        let mut found = claims(settings, &metadata, &tokens, login, now);
        if found.as_ref().is_err_and(is_unknown_key)
            && let Some(again) = self.metadata_again(&http, now)
        {
            found = claims(settings, &*again?, &tokens, login, now);
        }
        let claims = found.map_err(|cause| ProviderFault::Refused(with_causes(&cause)))?;
        let groups = match groups_in(claims.additional_claims(), &settings.groups_claim) {
            Some(groups) => groups,
            None => groups_of_user_info(settings, &client, &http, (claims, tokens.access_token()))?,
        };
        let texts = [
            claims.preferred_username().map(|name| name.as_str()),
            claims.email().map(|email| email.as_str()),
            claims.name().and_then(|names| names.get(None)).map(|name| name.as_str()),
        ];
        let shown = texts.into_iter().flatten().map(display_name).find(|name| !name.is_empty());
        Ok(Person {
            subject: claims.subject().as_str().to_owned(),
            display_name: shown.unwrap_or_default(),
            groups,
        })
    }
}

/// Returns the claims of the token if its signature, issuer, audience, nonce and times are valid.
fn claims<'a>(
    settings: &ProviderSettings,
    metadata: &CoreProviderMetadata,
    tokens: &'a Tokens,
    login: &ProviderLogin,
    now: UnixMillis,
) -> Result<&'a IdTokenClaims<OtherClaims, CoreGenderClaim>, ClaimsVerificationError> {
    let missing = || ClaimsVerificationError::Other("the answer has no ID token".to_owned());
    let token = tokens.id_token().ok_or_else(missing)?;
    let now: DateTime<Utc> = DateTime::from_timestamp_millis(now.0).unwrap_or_default();
    // The verifier does not know the client's secret, so it accepts only signatures with public
    // keys.
    let verifier = IdTokenVerifier::new_public_client(
        ClientId::new(settings.client_id.clone()),
        metadata.issuer().clone(),
        metadata.jwks().clone(),
    )
    .set_allowed_algs(SIGNATURES)
    .set_time_fn(move || now);
    token.claims(&verifier, &Nonce::new(login.nonce.clone()))
}

fn is_unknown_key(cause: &ClaimsVerificationError) -> bool {
    let unknown =
        ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey);
    *cause == unknown
}

/// Returns the groups in claims; `None` without the claim.
fn groups_in(claims: &OtherClaims, name: &str) -> Option<Vec<String>> {
    let value = claims.0.get(name)?;
    let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let texts = values.iter().filter_map(serde_json::Value::as_str);
    Some(texts.map(str::to_owned).collect())
}

/// Fetches the groups of a person when the token does not contain them, if the provider has an
/// address for user info.
fn groups_of_user_info(
    settings: &ProviderSettings,
    client: &ProviderClient,
    http: &HttpClient,
    (claims, token): (&IdTokenClaims<OtherClaims, CoreGenderClaim>, &AccessToken),
) -> Result<Vec<String>, ProviderFault> {
    // The library panics when the access token cannot be the value of a header.
    if client.user_info_url().is_none()
        || !token.secret().bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Ok(Vec::new());
    }
    let request = client.user_info(token.clone(), Some(claims.subject().clone()));
    let info: UserInfoClaims<OtherClaims, CoreGenderClaim> =
        request.map_err(unavailable)?.request(http).map_err(unavailable)?;
    Ok(groups_in(info.additional_claims(), &settings.groups_claim).unwrap_or_default())
}

fn unavailable(cause: impl std::error::Error) -> ProviderFault {
    ProviderFault::Unavailable(with_causes(&cause))
}

fn token_fault<E: std::error::Error + 'static>(
    cause: RequestTokenError<E, StandardErrorResponse<CoreErrorResponseType>>,
) -> ProviderFault {
    let RequestTokenError::ServerResponse(answer) = &cause else { return unavailable(cause) };
    let is_of_client = matches!(
        answer.error(),
        CoreErrorResponseType::InvalidClient | CoreErrorResponseType::UnauthorizedClient
    );
    if is_of_client {
        return ProviderFault::Client(format!(
            "the provider refuses client_id or client_secret of security.oidc: {answer}"
        ));
    }
    ProviderFault::Refused(format!("the provider refuses the code: {answer}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn groups_are_texts_in_a_list_or_one_text() {
        let groups = |value: serde_json::Value| {
            groups_in(&serde_json::from_value(json!({ "g": value })).unwrap(), "g").unwrap()
        };
        assert_eq!(groups(json!(["ops", 7, "dev", null, ["x"]])), ["ops", "dev"]);
        assert_eq!(groups(json!("ops")), ["ops"]);
        assert_eq!(groups(json!({ "ops": true })), [""; 0]);
        assert_eq!(groups_in(&OtherClaims::default(), "g"), None);
    }
}
