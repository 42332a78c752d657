//! One connection for questions: a line out, a reply back.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// A connection to a server on this machine.
#[derive(Debug)]
pub struct Wire {
    stream: BufReader<TcpStream>,
}

impl Wire {
    /// Connects to a port on 127.0.0.1. No answer takes longer than `patience`.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn open(port: u16, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Sends words that hold no spaces, and returns the reply: its first line, or the text of a bulk string.
    ///
    /// # Errors
    ///
    /// The system's, and what is no reply.
    pub fn ask(&mut self, line: &str) -> io::Result<String> {
        self.tell(line)?;
        let mut head = String::new();
        if self.stream.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let head = head.trim_end().to_owned();
        let Some(len) = head.strip_prefix('$').and_then(|len| len.parse().ok()) else {
            return Ok(head);
        };
        let mut text = vec![0; len];
        self.stream.read_exact(&mut text)?;
        self.stream.read_exact(&mut [0; 2])?;
        String::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Sends words that hold no spaces and that nothing may answer.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.stream.get_mut().write_all(request.as_bytes())
    }
}
