//! The bytes of queries and responses.

use std::{
    error::Error,
    io,
    net::{Ipv4Addr, Ipv6Addr},
};

use simple_dns::{CLASS, Name, Packet, PacketFlag, QTYPE, Question, RCODE, TYPE, rdata::RData};

use crate::{Record, RecordType};

fn invalid_data(cause: impl Into<Box<dyn Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, cause)
}

pub(crate) fn encode_query(id: u16, name: &str, kind: RecordType) -> io::Result<Vec<u8>> {
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let record_type = match kind {
        RecordType::Srv => TYPE::SRV,
        RecordType::A => TYPE::A,
        RecordType::Aaaa => TYPE::AAAA,
        RecordType::Txt => TYPE::TXT,
    };
    let name = Name::new(name).map_err(invalid_data)?;
    packet.questions.push(Question::new(name, QTYPE::TYPE(record_type), CLASS::IN.into(), false));
    packet.build_bytes_vec().map_err(invalid_data)
}

/// Returns true when the bytes are a response with the ID and the question of the query. The
/// response of a server that failed may lack the question.
pub(crate) fn is_response_to(query: &[u8], answer: &[u8]) -> bool {
    let (Ok(query), Ok(answer)) = (Packet::parse(query), Packet::parse(answer)) else {
        return false;
    };
    let is_same = |asked: &Question<'_>, answered: &Question<'_>| {
        let names = [&asked.qname, &answered.qname].map(ToString::to_string);
        names[0].eq_ignore_ascii_case(&names[1])
            && asked.qtype == answered.qtype
            && asked.qclass == answered.qclass
    };
    let is_question = match (&query.questions[..], &answer.questions[..]) {
        ([asked], [answered]) => is_same(asked, answered),
        (_, []) => answer.rcode() != RCODE::NoError,
        _ => false,
    };
    answer.id() == query.id() && answer.has_flags(PacketFlag::RESPONSE) && is_question
}

/// Returns true when the response must be requested again over TCP.
pub(crate) fn is_truncated(answer: &[u8]) -> io::Result<bool> {
    Ok(Packet::parse(answer).map_err(invalid_data)?.has_flags(PacketFlag::TRUNCATION))
}

/// Decodes a response; records of other types are ignored.
///
/// # Errors
/// The bytes are no response, a text is not UTF-8, or the server failed. An unknown name is no
/// error.
pub fn decode_response(answer: &[u8], kind: RecordType) -> io::Result<Vec<Record>> {
    let packet = Packet::parse(answer).map_err(invalid_data)?;
    let code = packet.rcode();
    if !matches!(code, RCODE::NoError | RCODE::NameError) {
        return Err(invalid_data(format!("the server answered {code:?}")));
    }
    let records = packet.answers.into_iter();
    records.filter_map(|record| record_of(record.rdata, kind).transpose()).collect()
}

fn record_of(data: RData<'_>, kind: RecordType) -> io::Result<Option<Record>> {
    Ok(match (data, kind) {
        (RData::SRV(srv), RecordType::Srv) => {
            Some(Record::Service(srv.target.to_string(), srv.port))
        }
        (RData::A(record), RecordType::A) => {
            Some(Record::Address(Ipv4Addr::from(record.address).into()))
        }
        (RData::AAAA(record), RecordType::Aaaa) => {
            Some(Record::Address(Ipv6Addr::from(record.address).into()))
        }
        (RData::TXT(text), RecordType::Txt) => {
            Some(Record::Text(text.try_into().map_err(invalid_data)?))
        }
        _ => None,
    })
}
